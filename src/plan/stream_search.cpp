#include "plan/stream_search.h"

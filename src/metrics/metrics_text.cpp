// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics_text.h"

#include <map>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "base/printable.h"

namespace braid {
namespace {

using Series = std::map<std::vector<std::string>, double>;

std::vector<std::string> label_texts(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(printable_label(value));
  return texts;
}

prometheus::ClientMetric make_metric(const MetricInfo& info, const std::vector<std::string>& values,
                                     double number) {
  prometheus::ClientMetric metric;
  for (size_t i = 0; i < values.size(); ++i) {
    metric.label.push_back({std::string(info.labels[i]), values[i]});
  }
  (info.is_counter ? metric.counter.value : metric.gauge.value) = number;
  return metric;
}

prometheus::MetricFamily make_family(const MetricInfo& info, const Series& series) {
  prometheus::MetricFamily family;
  family.name = info.name;
  family.help = info.help;
  family.type = info.is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  for (const auto& [values, number] : series) {
    family.metric.push_back(make_metric(info, values, number));
  }
  return family;
}

// Counters begin at 0, so that rate() sees the first event.
std::vector<Series> beginnings() {
  std::vector<Series> series(metric_infos().size());
  for (const MetricInfo& info : metric_infos()) {
    if (!info.is_counter) continue;
    Series& own = series[static_cast<size_t>(info.metric)];
    if (info.labels.empty()) own[{}] = 0;
    for (const std::string_view value : info.label_values) own[{std::string(value)}] = 0;
  }
  return series;
}

}  // namespace

std::string metrics_text(const std::vector<MetricsSource>& sources) {
  std::vector<Series> series = beginnings();
  for (const MetricsSource& source : sources) {
    for (const MetricSample& sample : source()) {
      BRAID_ASSERT(sample.label_values.size() == metric_info(sample.metric).labels.size(),
                   "a sample needs a value for each label of its metric");
      series[static_cast<size_t>(sample.metric)][label_texts(sample.label_values)] += sample.value;
    }
  }
  std::vector<prometheus::MetricFamily> families;
  for (const MetricInfo& info : metric_infos()) {
    const Series& own = series[static_cast<size_t>(info.metric)];
    if (!own.empty()) families.push_back(make_family(info, own));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace braid

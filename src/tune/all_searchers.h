// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tune/searcher.h"

// One of each kind, for make_searcher.
namespace braid {

// A lattice around the best setting, coarse first: one parameter at a time changes by half of its
// list, in both directions, then by a quarter, until neighbours are left. Hooke & Jeeves, "Direct
// search", J. ACM 8 (1961): the exploratory moves; a full lattice of five parameters would need
// more trials than there are.
std::unique_ptr<Searcher> make_grid_searcher();

// Any setting that was not tried yet, every second one near the center. Bergstra & Bengio, "Random
// search for hyper-parameter optimization", JMLR 13 (2012).
std::unique_ptr<Searcher> make_random_searcher();

// Some settings get one turn each, the better half of them another one, and so on until one is
// left; then it begins anew. Jamieson & Talwalkar, "Non-stochastic best arm identification and
// hyperparameter optimization", AISTATS 2016, §3.
std::unique_ptr<Searcher> make_halving_searcher();

// Children of the best settings: each parameter from one of two parents, then perhaps a step up or
// down. Jaderberg et al., "Population based training of neural networks", 2017, §3: exploit and
// explore.
std::unique_ptr<Searcher> make_population_searcher();

// The largest expected improvement under a Gaussian process through all scores. Jones, Schonlau &
// Welch, "Efficient global optimization of expensive black-box functions", J. Global Optim. 13
// (1998), §4; Snoek, Larochelle & Adams, NIPS 2012, for the kernel.
std::unique_ptr<Searcher> make_bayesian_searcher();

}  // namespace braid

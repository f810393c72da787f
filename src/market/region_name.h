// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "market/offer.h"
#include "market/site.h"

namespace tw::market {

/// "gcp:usx is no known region: priced as gcp:us", where an offer of an area prices a site whose region is
/// not named as regions of its cloud are (AWS, GCP and Lambda: us-west1, ap-south-2). Empty else.
std::string unknown_region_note(const Site& site, const Offer& offer);

}  // namespace tw::market

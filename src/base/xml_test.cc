// SPDX-License-Identifier: Apache-2.0
#include "base/xml.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

TEST(Xml, text_has_no_tags_and_no_entities) { EXPECT_EQ(xml_escaped("<b> & a"), "&lt;b&gt; &amp; a"); }

}  // namespace
}  // namespace tw

// SPDX-License-Identifier: Apache-2.0
#include "monitor/web/web_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace tw::monitor {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// What stands in the element that holds the data.
std::string data_in(std::string_view page) {
  static constexpr std::string_view kOpening = R"(<script type="application/json" id="data">)";
  const auto from = page.find(kOpening);
  if (from == std::string_view::npos) return "no such element";
  const auto text = page.substr(from + kOpening.size());
  return std::string(text.substr(0, text.find("</script>")));
}

std::string title_in(std::string_view page) {
  const auto from = page.find("<title>") + 7;
  return std::string(page.substr(from, page.find("</title>") - from));
}

TEST(WebPage, the_live_page_holds_no_data_and_a_frozen_one_its_own) {
  EXPECT_EQ(data_in(live_page()), "");
  EXPECT_EQ(data_in(frozen_page(PageKind::run, "run", R"({"round":7})")),
            R"({"kind":"run","data":{"round":7}})");
  EXPECT_EQ(data_in(frozen_page(PageKind::what_if, "run", "{}")), R"({"kind":"what-if","data":{}})");
}

TEST(WebPage, nothing_in_the_data_or_the_title_ends_its_element) {
  const std::string page = frozen_page(PageKind::run, "</title><script>alert(1)</script> & more",
                                       R"({"site":"</script><script>alert(2)</script><!--"})");
  EXPECT_EQ(data_in(page), R"({"kind":"run","data":{"site":")"
                           R"(\u003c/script>\u003cscript>alert(2)\u003c/script>\u003c!--"}})");
  EXPECT_EQ(title_in(page), "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; more");
  EXPECT_THAT(page, EndsWith("</html>\n"));
}

TEST(WebPage, the_page_loads_nothing_and_says_so_to_the_browser) {
  const std::string page(live_page());
  EXPECT_FALSE(
      std::regex_search(page, std::regex(R"(<(script|link|img|iframe)[^>]*(src|href)="?(https?:|/))")));
  EXPECT_THAT(page, HasSubstr(std::string(page_policy())));
  EXPECT_THAT(std::string(page_policy()), HasSubstr("default-src 'none'"));
  EXPECT_THAT(std::string(page_policy()), Not(HasSubstr("unsafe")));
}

TEST(WebPage, all_modules_are_joined_and_no_import_is_left) {
  const std::string page(live_page());
  EXPECT_THAT(page, HasSubstr("const page_lanes = (() => {"));
  EXPECT_THAT(page, HasSubstr("const { frozenData } = page_source;"));
  EXPECT_THAT(page, Not(HasSubstr("\nimport ")));
  EXPECT_THAT(page, Not(HasSubstr("\nexport ")));
  EXPECT_LT(page.size(), 400'000U);
}

}  // namespace
}  // namespace tw::monitor

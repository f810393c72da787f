// SPDX-License-Identifier: Apache-2.0
#include "spot/documents_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tw::spot {
namespace {

using Json = nlohmann::json;

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json parsed(const std::string& text) { return Json::parse(text, nullptr, false); }

AzureEvent azure_event(const Json& object) {
  AzureEvent event{.id = text_in(object, "EventId"),
                   .type = text_in(object, "EventType"),
                   .status = text_in(object, "EventStatus"),
                   .not_before = text_in(object, "NotBefore"),
                   .resources = {}};
  if (const auto names = object.find("Resources"); names != object.end() && names->is_array()) {
    for (const Json& name : *names)
      if (name.is_string()) event.resources.push_back(name.get<std::string>());
  }
  if (const auto lasts = object.find("DurationInSeconds"); lasts != object.end() && lasts->is_number())
    event.duration_s = lasts->get<double>();
  return event;
}

}  // namespace

Result<InstanceAction> read_instance_action(const std::string& json) {
  const Json object = parsed(json);
  if (!object.is_object()) return Error{"expected a JSON object with action and time"};
  InstanceAction action{text_in(object, "action"), text_in(object, "time")};
  if (action.time.empty()) action.time = text_in(object, "noticeTime");
  for (const char* known : {"terminate", "stop", "hibernate"}) {
    if (action.action == known) return action;
  }
  return Error{fmt::format("action \"{}\": expected terminate, stop or hibernate", action.action)};
}

Result<std::vector<AwsEvent>> read_aws_events(const std::string& json) {
  const Json list = parsed(json);
  if (!list.is_array()) return Error{"expected a JSON list of scheduled events"};
  std::vector<AwsEvent> events;
  for (const Json& object : list) {
    if (!object.is_object()) return Error{"expected JSON objects in the list of scheduled events"};
    events.push_back({text_in(object, "Code"), text_in(object, "NotBefore"), text_in(object, "State")});
  }
  return events;
}

Result<std::vector<AzureEvent>> read_azure_events(const std::string& json) {
  const Json document = parsed(json);
  if (!document.is_object() || !document.contains("Events") || !document["Events"].is_array())
    return Error{"expected a JSON object with a list Events"};
  std::vector<AzureEvent> events;
  for (const Json& object : document["Events"]) {
    if (!object.is_object()) return Error{"expected JSON objects in Events"};
    events.push_back(azure_event(object));
  }
  return events;
}

std::string azure_approval(const std::string& event_id) {
  return Json{{"StartRequests", Json::array({Json{{"EventId", event_id}}})}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Result<FileNotice> read_file_notice(const std::string& json) {
  const Json object = parsed(json);
  if (!object.is_object()) return Error{"expected a JSON object with kind and seconds"};
  FileNotice notice{.kind = text_in(object, "kind"), .text = text_in(object, "text")};
  if (const auto seconds = object.find("seconds"); seconds != object.end()) {
    if (!seconds->is_number()) return Error{"seconds: expected a number"};
    notice.seconds = seconds->get<double>();
  }
  return notice;
}

}  // namespace tw::spot

/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/graph.hpp: a graph written in code.
 *
 *     hipmm::graph graph;
 *     graph.add("memory", "device");
 *     graph.add("pool", "pool", {{"initial_size", "50%"}, {"maximum_size", "90%"}}).over("memory");
 *     graph.add("bins", "binning", {{"bins", {{{"size", "64KiB"}}, {{"size", "1MiB"}}}}}).over("pool");
 *     graph.use("bins");
 *     hipmm::library library{graph};
 *
 * Names and values are checked when the graph is used, with the messages of hipmm.json. */
#ifndef HIPMM_CPP_GRAPH_HPP
#define HIPMM_CPP_GRAPH_HPP

#include <cstdint>
#include <initializer_list>
#include <locale>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hipmm
{

/* The value of an option as JSON: a boolean, a number, a text, a list of values, or an object of options. */
class option_value
{
public:
  using field = std::pair<std::string, option_value>;

  option_value(bool value) : json_{value ? "true" : "false"}
  {
  }
  option_value(const char *value) : json_{quote(value)}
  {
  }
  option_value(const std::string &value) : json_{quote(value)}
  {
  }
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  option_value(Number value) : json_{number(value)}
  {
  }
  option_value(const std::vector<std::string> &values)
  {
    list(values);
  }
  option_value(const std::vector<option_value> &values)
  {
    list(values);
  }
  option_value(std::initializer_list<field> fields) : json_{object(fields)}
  {
  }
  option_value(std::initializer_list<std::initializer_list<field>> rows)
  {
    json_ = "[";
    for (const auto &row : rows) json_ += (json_.size() > 1 ? ", " : "") + object(row);
    json_ += "]";
  }

  [[nodiscard]] const std::string &json() const noexcept
  {
    return json_;
  }

  /* A text as a JSON string. */
  [[nodiscard]] static std::string quote(const std::string &text)
  {
    static const char *const digits = "0123456789abcdef";
    std::string quoted = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        quoted += '\\';
        quoted += c;
      } else if (byte < 0x20) {
        quoted += "\\u00";
        quoted += digits[byte >> 4U];
        quoted += digits[byte & 15U];
      } else {
        quoted += c;
      }
    }
    return quoted + "\"";
  }

  template <typename Fields> [[nodiscard]] static std::string object(const Fields &fields)
  {
    std::string json = "{";
    for (const auto &each : fields)
      json += (json.size() > 1 ? ", " : "") + quote(each.first) + ": " + each.second.json();
    return json + "}";
  }

private:
  template <typename Number> static std::string number(Number value)
  {
    if constexpr (std::is_integral_v<Number>) return std::to_string(value);
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.precision(17);
    text << value;
    return text.str();
  }

  template <typename Values> void list(const Values &values)
  {
    json_ = "[";
    for (const auto &value : values) json_ += (json_.size() > 1 ? ", " : "") + option_value{value}.json();
    json_ += "]";
  }

  std::string json_;
};

class graph
{
public:
  using options = std::vector<option_value::field>;

  /* A resource that is being described. Valid until the graph's next add(). */
  class entry
  {
  public:
    /* The resource below. */
    entry &over(const std::string &upstream)
    {
      fields_.emplace_back("upstream", upstream);
      return *this;
    }

    /* The resources below, in order, of a type that has several: over("narrow", "middle"). */
    template <typename... Names>
    entry &over(const std::string &first, const std::string &second, const Names &...others)
    {
      fields_.emplace_back("upstream", std::vector<std::string>{first, second, others...});
      return *this;
    }
    entry &set(const std::string &option, const option_value &value)
    {
      fields_.emplace_back(option, value);
      return *this;
    }

  private:
    friend class graph;
    options fields_;
  };

  /* Adds a resource of a type. */
  entry &add(const std::string &name, const std::string &type, const options &settings = {})
  {
    resources_.emplace_back(name, entry{});
    entry &added = resources_.back().second;
    added.fields_.emplace_back("type", type);
    added.fields_.insert(added.fields_.end(), settings.begin(), settings.end());
    return added;
  }

  /* The top resource of every device that names none, and of device `device`. */
  graph &use(const std::string &name)
  {
    devices_.emplace_back("default", name);
    return *this;
  }
  graph &use(const std::string &name, int device)
  {
    devices_.emplace_back(std::to_string(device), name);
    return *this;
  }

  /* Any other member of the file: "runtime", "plugin_path". */
  graph &set(const std::string &member, const option_value &value)
  {
    members_.emplace_back(member, value);
    return *this;
  }

  /* The text of hipmm.json. */
  [[nodiscard]] std::string json() const
  {
    std::string text = "{";
    for (const auto &member : members_) text += option_value::quote(member.first) + ": " + member.second.json() + ", ";
    text += "\"resources\": {";
    const char *separator = "";
    for (const auto &each : resources_) {
      text += separator + option_value::quote(each.first) + ": " + option_value::object(each.second.fields_);
      separator = ", ";
    }
    return text + "}, \"devices\": " + option_value::object(devices_) + "}";
  }

private:
  std::vector<std::pair<std::string, entry>> resources_;
  options devices_, members_;
};

} // namespace hipmm

#endif

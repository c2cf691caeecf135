/* SPDX-License-Identifier: MIT */
/* rmm/mr/logging_resource_adaptor.hpp of RMM 26: a row for each allocation and free. */
#ifndef HIPMM_COMPAT_RMM_MR_LOGGING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_LOGGING_RESOURCE_ADAPTOR_HPP

#include "../logger.hpp"
#include <hipmm/compat/detail/adaptor_parts.hpp>
#include <hipmm/compat/detail/value.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

namespace detail
{

struct logging_state {
  std::function<void()> flush; /* of a stream of the program, or of sinks; empty: the file */
};

} // namespace detail

/* The rows are CSV: Thread,Time,Action,Pointer,Size,Stream. A file is overwritten, and its folder created if need be; a
 * stream of the program must outlive the object. With auto_flush each row is written at once. */
class logging_resource_adaptor : public hipmm::compat::value_over<logging_resource_adaptor, detail::logging_state>
{
public:
  logging_resource_adaptor(hipmm::compat::any_device upstream, const std::string &filename = get_default_filename(),
                           bool auto_flush = false)
      : value_over{upstream,
                   hipmm::compat::below{upstream}.make("logging", hipmm::compat::log_options(filename, auto_flush))}
  {
  }
  logging_resource_adaptor(hipmm::compat::any_device upstream, std::ostream &stream, bool auto_flush = false)
      : value_over{
            upstream, make(upstream, hipmm::compat::rows_to(stream, auto_flush)), {[&stream] { stream.flush(); }}}
  {
  }
  logging_resource_adaptor(hipmm::compat::any_device upstream, std::initializer_list<rapids_logger::sink_ptr> sinks,
                           bool auto_flush = false)
      : logging_resource_adaptor{std::move(upstream), std::make_shared<rapids_logger::logger>("RMM", sinks), auto_flush}
  {
  }

  void flush()
  {
    if (shared().state.flush)
      shared().state.flush();
    else
      hipmm::compat::check(::hipmm_resource_perform(shared().behind.resource.get(), "flush"));
  }
  [[nodiscard]] std::string header() const
  {
    return hipmm::compat::log_header;
  }

  /* The value of the environment variable RMM_LOG_FILE. Throws logic_error without the variable. */
  static std::string get_default_filename()
  {
    return hipmm::compat::default_log_name();
  }

private:
  logging_resource_adaptor(hipmm::compat::any_device upstream, std::shared_ptr<rapids_logger::logger> logger,
                           bool auto_flush)
      : value_over{upstream, make(upstream, rows_to(logger, auto_flush)), {[logger] { logger->flush(); }}}
  {
  }
  static hipmm::compat::row_function rows_to(std::shared_ptr<rapids_logger::logger> logger, bool auto_flush)
  {
    logger->set_pattern("%v");
    if (auto_flush) logger->flush_on(rapids_logger::level_enum::info);
    return [logger](const char *row) { logger->info("%s", row); };
  }
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, hipmm::compat::row_function output)
  {
    const hipmm::compat::below below{upstream};
    return hipmm::compat::make_log(below.device, below.upstream, std::move(output));
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif

/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/logging_resource_adaptor.hpp of RMM 23.12: a row for each allocation and free. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_LOGGING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_LOGGING_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>
#include <hipmm/compat/detail/adaptor_parts.hpp>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#ifdef HIPMM_COMPAT_SPDLOG
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#endif

namespace rmm::mr
{

/* The rows are CSV: Thread,Time,Action,Pointer,Size,Stream. A file is overwritten, and its folder created if need be; a
 * stream of the program must outlive the object. With auto_flush each row is written at once. */
template <typename Upstream>
class logging_resource_adaptor final : public hipmm::compat::adaptor<logging_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<logging_resource_adaptor<Upstream>, Upstream>;

public:
  logging_resource_adaptor(Upstream *upstream, const std::string &filename = get_default_filename(),
                           bool auto_flush = false)
      : base{upstream, make(upstream, filename, auto_flush)}
  {
  }
  logging_resource_adaptor(Upstream &upstream, const std::string &filename = get_default_filename(),
                           bool auto_flush = false)
      : logging_resource_adaptor{std::addressof(upstream), filename, auto_flush}
  {
  }
  logging_resource_adaptor(Upstream *upstream, std::ostream &stream, bool auto_flush = false)
      : base{upstream, make(upstream, hipmm::compat::rows_to(stream, auto_flush))}, flush_{
                                                                                        [&stream] { stream.flush(); }}
  {
  }
  logging_resource_adaptor(Upstream &upstream, std::ostream &stream, bool auto_flush = false)
      : logging_resource_adaptor{std::addressof(upstream), stream, auto_flush}
  {
  }
#ifdef HIPMM_COMPAT_SPDLOG
  logging_resource_adaptor(Upstream *upstream, spdlog::sinks_init_list sinks, bool auto_flush = false)
      : logging_resource_adaptor{upstream, std::make_shared<spdlog::logger>("RMM", sinks), auto_flush}
  {
  }
#endif
  logging_resource_adaptor(const logging_resource_adaptor &) = delete;
  logging_resource_adaptor &operator=(const logging_resource_adaptor &) = delete;
  logging_resource_adaptor(logging_resource_adaptor &&) noexcept = default;
  logging_resource_adaptor &operator=(logging_resource_adaptor &&) noexcept = default;

  void flush()
  {
    if (flush_)
      flush_();
    else
      hipmm::compat::check(::hipmm_resource_perform(this->behind().get(), "flush"));
  }
  [[nodiscard]] std::string header() const
  {
    return hipmm::compat::log_header;
  }

  /* What the environment variable RMM_LOG_FILE says; logic_error without it. */
  [[nodiscard]] static std::string get_default_filename()
  {
    return hipmm::compat::default_log_name();
  }

private:
#ifdef HIPMM_COMPAT_SPDLOG
  logging_resource_adaptor(Upstream *upstream, std::shared_ptr<spdlog::logger> logger, bool auto_flush)
      : base{upstream, make(upstream, write_to(logger, auto_flush))}, flush_{[logger] { logger->flush(); }}
  {
  }
  static hipmm::compat::row_function write_to(std::shared_ptr<spdlog::logger> logger, bool auto_flush)
  {
    logger->set_pattern("%v");
    if (auto_flush) logger->flush_on(spdlog::level::info);
    return [logger](const char *row) { logger->info(row); };
  }
#endif

  static hipmm::compat::backing make(Upstream *upstream, const std::string &filename, bool auto_flush)
  {
    return typename base::below{upstream}.make("logging", hipmm::compat::log_options(filename, auto_flush));
  }

  static hipmm::compat::backing make(Upstream *upstream, hipmm::compat::row_function output)
  {
    const typename base::below below{upstream};
    return hipmm::compat::make_log(below.device, below.upstream, std::move(output));
  }

  std::function<void()> flush_; /* of a stream of the program; empty: the file */
};

template <typename Upstream>
logging_resource_adaptor<Upstream> make_logging_adaptor(
    Upstream *upstream, const std::string &filename = logging_resource_adaptor<Upstream>::get_default_filename(),
    bool auto_flush = false)
{
  return logging_resource_adaptor<Upstream>{upstream, filename, auto_flush};
}
template <typename Upstream>
logging_resource_adaptor<Upstream> make_logging_adaptor(Upstream *upstream, std::ostream &stream,
                                                        bool auto_flush = false)
{
  return logging_resource_adaptor<Upstream>{upstream, stream, auto_flush};
}

} // namespace rmm::mr

#endif

/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/failure_callback_resource_adaptor.hpp of RMM 23.12: a function of the program when the upstream fails. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace rmm::mr
{

/* Returns whether to try again. The function may throw. */
using failure_callback_t = std::function<bool(std::size_t, void *)>;

/* Calls the function when an allocation of the upstream ends with an ExceptionType. */
template <typename Upstream, typename ExceptionType = rmm::out_of_memory>
class failure_callback_resource_adaptor final
    : public hipmm::compat::adaptor<failure_callback_resource_adaptor<Upstream, ExceptionType>, Upstream>
{
  using base = hipmm::compat::adaptor<failure_callback_resource_adaptor<Upstream, ExceptionType>, Upstream>;

public:
  using exception_type = ExceptionType;

  failure_callback_resource_adaptor(Upstream *upstream, failure_callback_t callback, void *callback_arg)
      : base{upstream, make(upstream, std::move(callback), callback_arg)}
  {
  }
  failure_callback_resource_adaptor(Upstream &upstream, failure_callback_t callback, void *callback_arg)
      : failure_callback_resource_adaptor{std::addressof(upstream), std::move(callback), callback_arg}
  {
  }
  failure_callback_resource_adaptor(const failure_callback_resource_adaptor &) = delete;
  failure_callback_resource_adaptor &operator=(const failure_callback_resource_adaptor &) = delete;
  failure_callback_resource_adaptor(failure_callback_resource_adaptor &&) noexcept = default;
  failure_callback_resource_adaptor &operator=(failure_callback_resource_adaptor &&) noexcept = default;

private:
  struct state {
    failure_callback_t callback;
    void *callback_arg;
    bool is_exception_passed;

    /* Whether the caller would get an ExceptionType: the exception of an upstream that is the program's, or RMM's. */
    [[nodiscard]] bool is_caught() const
    {
      const std::exception_ptr thrown = hipmm::compat::pending_exception();
      if (!thrown) return std::is_convertible_v<rmm::out_of_memory *, ExceptionType *>;
      try {
        std::rethrow_exception(thrown);
      } catch (const ExceptionType &) {
        return true;
      } catch (...) {
        return false;
      }
    }

    static int call(void *arg, std::size_t bytes) noexcept
    {
      const auto *self = static_cast<const state *>(arg);
      if (!self->is_exception_passed) hipmm::compat::pending_exception() = nullptr; /* a pool below has handled it */
      const std::exception_ptr thrown = hipmm::compat::pending_exception();
      try {
        if (!self->is_caught()) return 0;
        const bool is_tried_again = self->callback(bytes, self->callback_arg);
        hipmm::compat::pending_exception() = is_tried_again ? nullptr : thrown;
        return is_tried_again;
      } catch (...) {
        hipmm::compat::pending_exception() = std::current_exception();
        return 0;
      }
    }
  };

  static hipmm::compat::backing make(Upstream *upstream, failure_callback_t callback, void *callback_arg)
  {
    const typename base::below below{upstream};
    const bool is_passed = below.upstream.is_exception_passed;
    auto made = std::make_unique<state>(state{std::move(callback), callback_arg, is_passed});
    const auto describe = [](state *arg) {
      return ::hipmm_failure_handler{sizeof(::hipmm_failure_handler), state::call, arg};
    };
    return {hipmm::compat::make_resource_with(below.device, "failure_callback", below.upstream.resource, "callback",
                                              std::move(made), describe),
            true};
  }
};

} // namespace rmm::mr

#endif

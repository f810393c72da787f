// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tw::sim {

/// A function that is called once, later. Moves but does not copy; captures of up to kInline bytes (a message
/// and its target) cost no allocation, unlike std::function's.
class Call {
 public:
  static constexpr std::size_t kInline = 80;

  Call() = default;

  template <class F>

  requires(!std::same_as<std::decay_t<F>, Call> && std::invocable<std::decay_t<F>&>)
      Call(F&& what) {  // NOLINT: implicit, as std::function
    using Stored = std::decay_t<F>;
    if constexpr (fits<Stored>()) {
      new (place()) Stored(std::forward<F>(what));
      kind_ = &kInlineKind<Stored>;
    } else {
      new (place()) Stored*(std::make_unique<Stored>(std::forward<F>(what)).release());
      kind_ = &kHeapKind<Stored>;
    }
  }

  Call(Call&& other) noexcept : kind_(std::exchange(other.kind_, nullptr)) {
    if (kind_ != nullptr) kind_->move(other.place(), place());
  }

  Call& operator=(Call&& other) noexcept {
    if (this == &other) return *this;
    drop();
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ != nullptr) kind_->move(other.place(), place());
    return *this;
  }

  ~Call() { drop(); }

  explicit operator bool() const { return kind_ != nullptr; }

  void operator()() { kind_->call(place()); }

 private:
  struct Kind {
    void (*call)(void*);
    void (*move)(void* from, void* to) noexcept;  ///< and ends `from`
    void (*end)(void*) noexcept;
  };

  template <class F>
  static constexpr bool fits() {
    // NOLINTNEXTLINE(misc-redundant-expression): it is for some F only
    return sizeof(F) <= kInline && alignof(F) <= alignof(void*) && std::is_nothrow_move_constructible_v<F>;
  }

  template <class F>
  static F& at(void* place) {
    return *std::launder(static_cast<F*>(place));
  }

  template <class F>
  static constexpr Kind kInlineKind{[](void* place) { at<F>(place)(); },
                                    [](void* from, void* to) noexcept {
                                      new (to) F(std::move(at<F>(from)));
                                      at<F>(from).~F();
                                    },
                                    [](void* place) noexcept { at<F>(place).~F(); }};

  template <class F>
  static constexpr Kind kHeapKind{[](void* place) { (*at<F*>(place))(); },
                                  [](void* from, void* to) noexcept { new (to) F*(at<F*>(from)); },
                                  [](void* place) noexcept { std::unique_ptr<F>{at<F*>(place)}; }};

  void drop() {
    if (kind_ != nullptr) std::exchange(kind_, nullptr)->end(place());
  }

  void* place() { return bytes_.data(); }

  alignas(void*) std::array<std::byte, kInline> bytes_;
  const Kind* kind_ = nullptr;
};

}  // namespace tw::sim

//! Rules of mq-deadline that differ between versions of Linux.

use crate::kernel::KernelVersion;

/// The request that continues a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Onward {
    /// Up to 5.13: the successor of the last request, determined at the dispatch of the last
    /// request. A request of the other direction clears the successor.
    Forgotten,
    /// 5.14 to 6.4: the successor as before, stored for each class and direction.
    Successor,
    /// From 6.5: the first request at or after the position of the last request.
    Position,
}

/// Treatment of priority classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Classes {
    /// Up to 5.13: classes are ignored.
    None,
    /// 5.14 and 5.15: a class is served when no higher class has queued requests.
    Strict,
    /// From 5.16: a request in the device holds back lower classes. Requests that are old enough go
    /// first.
    Aging,
}

/// Number of tags that requests other than reads may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    /// All tags.
    None,
    /// `async_depth` tags. If limits are counted in each word of the tags, `async_depth` tags of
    /// each word.
    Plain,
    /// `async_depth` tags. If limits are counted in each word of the tags, each word has its part
    /// of these tags.
    Shared,
}

/// Rules of a version of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rules {
    pub(super) onward: Onward,
    pub(super) classes: Classes,
    pub(super) limit: Limit,
    /// Whether all classes share one list of requests that are inserted at the head. This list is
    /// served before everything else. Otherwise each class has its own list, which waits for the
    /// turn of the class.
    pub(super) shares_head: bool,
    /// Whether `async_depth` starts at three quarters of `nr_requests` instead of all.
    pub(super) starts_at_three_quarters: bool,
}

impl Rules {
    pub(super) fn of(kernel: KernelVersion) -> Self {
        let has_all = kernel.has((6, 11), &[(6, 1, 105)]);
        let is_plain_again = kernel.has((6, 9), &[(6, 1, 84)]);
        let is_shared = kernel.has((6, 6), &[(6, 1, 53)]);
        Self {
            onward: match () {
                () if kernel.is_since(6, 5) => Onward::Position,
                () if kernel.is_since(5, 14) => Onward::Successor,
                () => Onward::Forgotten,
            },
            classes: match () {
                () if kernel.is_since(5, 16) => Classes::Aging,
                () if kernel.is_since(5, 14) => Classes::Strict,
                () => Classes::None,
            },
            limit: match () {
                () if !kernel.is_since(5, 14) => Limit::None,
                () if has_all || is_shared && !is_plain_again => Limit::Shared,
                () => Limit::Plain,
            },
            shares_head: !kernel.is_since(5, 14) || kernel.has((6, 19), &[(6, 12, 63)]),
            starts_at_three_quarters: !has_all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_limits_match_each_kernel_version() {
        let rules = |text: &str| Rules::of(text.parse().unwrap());
        let of = |text: &str| (rules(text).limit, rules(text).starts_at_three_quarters);
        assert_eq!(rules("5.13").limit, Limit::None);
        for plain in ["5.14", "6.5", "6.1.52", "6.1.84", "6.1.104", "6.9", "6.10"] {
            assert_eq!(of(plain), (Limit::Plain, true), "{plain}");
        }
        for shared in ["6.1.53", "6.1.83", "6.6", "6.8"] {
            assert_eq!(of(shared), (Limit::Shared, true), "{shared}");
        }
        for all in ["6.1.105", "6.1", "6.11", "6.12", "7.0"] {
            assert_eq!(of(all), (Limit::Shared, false), "{all}");
        }
    }
}

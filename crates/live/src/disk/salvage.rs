//! A request that failed although it carries several operations' data is tried again part by part, so that each operation hears of its own
//! errors and of no other's.

use std::collections::BTreeMap;

use iosched::RequestId;

use crate::Errno;

/// Requests that are tried part by part.
#[derive(Debug, Default)]
pub(super) struct Salvages {
    /// Of each, the parts not tried yet, last first, and how many have no result yet.
    requests: BTreeMap<RequestId, (Vec<u32>, usize)>,
    /// Of each part tried.
    results: BTreeMap<u32, Result<(), Errno>>,
}

impl Salvages {
    /// `parts` of `request` are to be tried alone, the last of them first.
    pub(super) fn begin(&mut self, request: RequestId, parts: Vec<u32>) {
        let count = parts.len();
        self.requests.insert(request, (parts, count));
    }

    /// The next part to try.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(RequestId, u32)> {
        if self.requests.is_empty() {
            return None;
        }
        self.requests.iter_mut().find_map(|(&request, (parts, _))| Some((request, parts.pop()?)))
    }

    /// A part has been tried. Whether it was the last of its request.
    pub(super) fn tried(&mut self, request: RequestId, part: u32, result: Result<(), Errno>) -> bool {
        self.results.insert(part, result);
        let Some((_, left)) = self.requests.get_mut(&request) else { return false };
        *left -= 1;
        let last = *left == 0;
        if last {
            self.requests.remove(&request);
        }
        last
    }

    /// Takes the result of a part that was tried alone.
    #[inline]
    pub(super) fn result(&mut self, part: u32) -> Option<Result<(), Errno>> {
        if self.results.is_empty() { None } else { self.results.remove(&part) }
    }
}

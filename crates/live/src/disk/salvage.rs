//! Retries of failed requests. A request can carry data of several operations. If such a request
//! fails, the disk retries it part by part, so that each operation gets only its own errors.

use std::collections::BTreeMap;

use iosched::RequestId;

use crate::Errno;

/// A request that the disk retries part by part. Only one part is in flight at a time, because the
/// request has only one tag of the device.
#[derive(Debug)]
struct Salvage {
    /// Parts that the disk has not retried yet. The next part is at the end.
    left: Vec<u32>,
    /// Whether a part is in flight.
    trying: bool,
}

/// All requests that the disk retries part by part.
#[derive(Debug, Default)]
pub(super) struct Salvages {
    requests: BTreeMap<RequestId, Salvage>,
    /// Result of each part that the disk has retried.
    results: BTreeMap<u32, Result<(), Errno>>,
}

impl Salvages {
    /// Starts to retry each of the `parts` of `request` separately, from the last element to the
    /// first.
    pub(super) fn begin(&mut self, request: RequestId, parts: Vec<u32>) {
        self.requests.insert(request, Salvage { left: parts, trying: false });
    }

    /// Returns the next part to retry.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(RequestId, u32)> {
        if self.requests.is_empty() {
            return None;
        }
        let (&request, salvage) = self.requests.iter_mut().find(|(_, salvage)| !salvage.trying)?;
        salvage.trying = true;
        Some((request, salvage.left.pop()?))
    }

    /// Stores the result of a part. Returns whether this part was the last one of its request.
    pub(super) fn tried(&mut self, request: RequestId, part: u32, result: Result<(), Errno>) -> bool {
        self.results.insert(part, result);
        let Some(salvage) = self.requests.get_mut(&request) else { return false };
        salvage.trying = false;
        let last = salvage.left.is_empty();
        if last {
            self.requests.remove(&request);
        }
        last
    }

    /// Takes the result of a part that the disk retried separately.
    #[inline]
    pub(super) fn result(&mut self, part: u32) -> Option<Result<(), Errno>> {
        if self.results.is_empty() { None } else { self.results.remove(&part) }
    }
}

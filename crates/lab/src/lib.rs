//! Plans, runs, records, statistics, verdicts and reports.

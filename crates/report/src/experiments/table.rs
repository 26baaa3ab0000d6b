//! All results of an experiment: published and simulated values, their ratio, and both verdicts.

use iosched_lab::reproduce::{Cell, ExperimentResults, Judgement, Known, Row};
use iosched_lab::{Decimals, significant};
use maud::{Markup, html};

use crate::parts::name;
use crate::view::Setting;

pub(super) fn table(results: &ExperimentResults<'_>, settings: &[Setting<'_>]) -> Markup {
    let rows = || {
        results.rows.iter().map(|row| {
            let first = results.rows.iter().find(|other| other.case == row.case);
            (row, first.is_some_and(|first| std::ptr::eq(first, row)))
        })
    };
    html! {
        div .scroll tabindex="0" {
            table .figures.many {
                thead {
                    tr {
                        th scope="col" { "Test" }
                        th scope="col" { "Unit" }
                        th scope="col" { "Setting" }
                        th scope="col" .number { "Published" }
                        th scope="col" .number { "Simulated" }
                        th scope="col" .number { "Ratio" }
                        th scope="col" .number { "Over unknown values" }
                        th scope="col" { "Published verdict" }
                        th scope="col" { "Simulated verdict" }
                    }
                }
                tbody {
                    @for (row, begins) in rows() {
                        @if begins {
                            tr .begins { th scope="rowgroup" colspan="9" { strong { (results.experiment.cases[row.case].name) } } }
                        }
                        (lines(results, row, settings))
                    }
                }
            }
        }
    }
}

fn lines(results: &ExperimentResults<'_>, row: &Row, settings: &[Setting<'_>]) -> Markup {
    let known = row.cells.iter().flat_map(|cell| [cell.published, simulated(cell)]).flatten();
    let decimals = Decimals::of(&known.map(|known| (known.mean, known.sd)).collect::<Vec<_>>());
    let baseline = results.experiment.baseline();
    html! {
        @for (setting, cell) in settings.iter().zip(&row.cells) {
            @let is_first = setting.number == 0;
            tr {
                th scope="row" {
                    @if is_first { (row.test) @if row.is_short() { span title="shorter than a minute" { " ◦" } } }
                }
                td .unit { @if is_first { (row.unit) } }
                td .setting { (name(setting)) @if cell.held_out { span title="not used to make \
                    the models" { " †" } } }
                (figure(cell.published, decimals))
                (figure(simulated(cell), decimals))
                td .number { @if let Some(ratio) = cell.ratio() { (significant(ratio, 3)) } }
                td .number .quiet {
                    @if let Some((low, high)) = cell.band() { (decimals.show(low)) " to " (decimals.show(high)) }
                }
                @if setting.number == baseline {
                    td .quiet { "baseline" } td {}
                } @else {
                    td { (verdict(cell.verdict_published)) }
                    td { (verdict(cell.verdict_simulated)) @if cell.same() == Some(false) { strong { " ≠" } }
                        @if let Some(outcomes) = cell.outcomes() { span .quiet { "; " (outcomes.describe("")) } }
                        @for other in cell.otherwise() {
                            span .quiet { "; " (other.assumption) ": " (verdict(other.verdict)) }
                        }
                    }
                }
            }
        }
    }
}

fn simulated(cell: &Cell) -> Option<Known> {
    cell.simulated.as_ref().map(|simulated| simulated.known)
}

fn figure(known: Option<Known>, decimals: Decimals) -> Markup {
    html! {
        td .number {
            @match known {
                Some(known) => {
                    (decimals.show(known.mean))
                    @if let Some(sd) = known.sd { span .sd { " ± " (decimals.show(sd)) } }
                }
                None => span .quiet { "–" },
            }
        }
    }
}

fn verdict(verdict: Option<Judgement>) -> Markup {
    html! {
        @match verdict {
            Some(verdict) => span .verdict .(verdict.id()) { (verdict.id().replace('_', " ")) },
            None => span .quiet { "–" },
        }
    }
}

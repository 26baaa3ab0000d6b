//! Values of applications over time: a small plot per setting, with a line at the published mean.

use maud::{Markup, html};

use super::series_names;
use crate::parts::{facet, facets, section};
use crate::svg::{Margin, Path, Plot, nice_end, picture, px};
use crate::units::{linear_ticks, time_ticks};
use crate::view::Setting;
use iosched_lab::reproduce::{ExperimentResults, SeriesRecord};

const SIZE: (f64, f64) = (340.0, 150.0);
const MARGIN: Margin = Margin { top: 22.0, right: 12.0, bottom: 26.0, left: 46.0 };

/// Returns a row of plots per series.
pub(super) fn pictures(results: &ExperimentResults<'_>, settings: &[Setting<'_>]) -> Markup {
    let names = series_names(results, settings, |series| series.step_s.is_some() && series.values.len() > 1);
    html! {
        @for (case, name) in names {
            (section(&format!("{}-time-{case}-{name}", results.experiment.name), &format!("{name} over time"), &html! {
                p .legend { "Lines show the first run of each setting. Dashed lines show the published means." }
                (row(results, settings, case, name))
            }))
        }
    }
}

fn row(results: &ExperimentResults<'_>, settings: &[Setting<'_>], case: usize, name: &str) -> Markup {
    let mean = |setting: &Setting<'_>| {
        let row = results.rows.iter().find(|row| row.case == case && row.test == name)?;
        row.cells[setting.number].published.map(|known| known.mean)
    };
    let rows: Vec<(&Setting<'_>, &SeriesRecord, Option<f64>)> = settings
        .iter()
        .filter_map(|setting| {
            let series =
                results.series(case, setting.number).find(|series| series.name == name && series.step_s.is_some())?;
            Some((setting, series, mean(setting)))
        })
        .collect();
    let highest = rows.iter().flat_map(|(_, series, mean)| series.values.iter().copied().chain(*mean));
    let top = nice_end(highest.fold(1e-9, f64::max), 4);
    let seconds = |series: &SeriesRecord| series.values.len() as f64 * series.step_s.unwrap_or(1.0);
    let end_s = rows.iter().map(|(_, series, _)| seconds(series)).fold(1e-9, f64::max);
    html! {
        div .(facets(rows.len())) {
            @for (setting, series, mean) in rows {
                @let id = format!("time-{}-{case}-{name}-{}", results.experiment.name, setting.number);
                (facet(setting, &plot(&id, series, mean, (end_s, top)), &html! {}))
            }
        }
    }
}

fn plot(id: &str, series: &SeriesRecord, mean: Option<f64>, (end_s, top): (f64, f64)) -> Markup {
    let plot = Plot::linear(SIZE, MARGIN, (0.0, end_s * 1e9), (0.0, top));
    let step_s = series.step_s.unwrap_or(1.0);
    let mut line = Path::default();
    for (number, &value) in series.values.iter().enumerate() {
        line.line_to(plot.x.at((number as f64 + 0.5) * step_s * 1e9), plot.y.at(value));
    }
    let (left, _, right, _) = plot.inner();
    let body = html! {
        (plot.y_axis(&linear_ticks(0.0, top, 4, ("", 1.0)), &series.unit))
        (plot.x_axis(&time_ticks(0.0, end_s * 1e9, 5), false))
        @if let Some(mean) = mean {
            @let y = px(plot.y.at(mean));
            line .published-mean x1=(px(left)) x2=(px(right)) y1=(y) y2=(y) {}
        }
        path .line.thin d=(line.data()) {}
    };
    let about = format!("{} values, {step_s} s apart", series.values.len());
    picture(id, SIZE, &format!("{} over time", series.name), &about, &body)
}

// Plots are drawn again by uPlot where they stand, from the JSON beside them: a part is dragged over to zoom in, a
// double click shows all of it, values stand below. By keyboard: arrows move, + and - zoom, 0 shows all of it.
// A picture that is not seen is not drawn; printed are the pictures that were there before.

(() => {
    const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const colour = (setting) => theme(`c${setting % 8}`);

    const digits = (value, count) => String(Number(value.toPrecision(count)));
    const scaled = (units) => (value, count = 4) => {
        const [unit, size] = units.find(([, least]) => Math.abs(value) >= least) || units[units.length - 1];
        return value === 0 ? "0" : `${digits(value / size, count)} ${unit}`;
    };
    const time = scaled([["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]]);
    const bytes = scaled([["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
    const binary = scaled([["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]]);
    const thousands = (value) => (Math.abs(value) >= 1e4 ? Math.round(value).toLocaleString("en") : digits(value, 4));
    const write = {
        time: (value) => time(value),
        bytes: (value) => bytes(value),
        bytes_per_second: (value) => (value === 0 ? "0" : `${bytes(value)}/s`),
        nines: (value) => `${Number((100 * (1 - 10 ** -value)).toFixed(Math.max(1, Math.ceil(value))))} %`,
        size: (value) => binary(2 ** Math.round(value)),
        power: (value) => thousands(2 ** value),
        share: (value) => `${digits(100 * value, 3)} %`,
        number: (value, axis) => thousands(value) + (axis.unit ? ` ${axis.unit}` : ""),
    };
    const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif';
    const whole = new Set(["nines", "size", "power"]);

    // What is zoomed, by group, or by picture if it has none.
    const zooms = new Map(state.list("zoom").map((item) => item.split("."))
        .map(([key, ...ends]) => [key, ends.map((end) => Number(end.replace("_", ".")))]));
    const made = [];

    function zoom(key, ends) {
        if (ends) zooms.set(key, ends);
        else zooms.delete(key);
        const end = (value) => String(Number(value.toPrecision(6))).replace(".", "_");
        state.set("zoom", [...zooms].map(([key, ends]) => [key, ...ends.map(end)].join(".")));
        made.filter((one) => one.key === key).forEach((one) => one.apply());
    }

    function axis(chart, side) {
        const { quantity, log, name, unit, marks } = chart[side];
        const named = [name, unit].filter((part) => part).join(", ");
        const label = (value) => (value === null ? "" : write[quantity](value, {}));
        const options = {
            stroke: () => theme("quiet"),
            grid: { stroke: () => theme("grid"), width: 1, show: side === "y" },
            ticks: { stroke: () => theme("grid"), width: 1, size: 4 },
            font,
            ...(named && { label: named, labelFont: font, labelSize: 18, labelGap: 2 }),
            values: (_, splits) => splits.map(label),
            space: side === "x" ? 64 : 26,
            size: side === "x" ? 32 : 62,
        };
        if (whole.has(quantity)) {
            options.splits = (_, at, from, to) => {
                const [steps, by] = [[], Math.ceil((to - from) / 8)];
                for (let step = Math.ceil(from); step <= to; step += by) steps.push(step);
                return steps.length > 1 || quantity !== "nines" ? steps : [from, (from + to) / 2, to];
            };
        }
        // Of a logarithmic axis, powers of ten; with 2 and 5 times them, if there are few.
        if (log) options.filter = (_, splits) => splits;
        if (log) options.splits = (_, at, from, to) => {
            const steps = Math.log10(to / from) < 2.5 ? [1, 2, 5] : [1];
            const marks = [];
            for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power += 1) {
                marks.push(...steps.map((step) => step * 10 ** power));
            }
            return marks.filter((mark) => mark >= from && mark <= to);
        };
        // What was run is what is marked, as far as there is room.
        if (marks) options.splits = (_, at, from, to) => marks.filter((mark) => mark >= from && mark <= to);
        if (marks) options.filter = (u, splits) => {
            let free = -Infinity;
            return splits.map((mark) => {
                const place = u.valToPos(mark, side);
                if (place < free) return null;
                free = place + 8 + 7 * label(mark).length;
                return mark;
            });
        };
        return options;
    }

    function series(one) {
        const line = one.draw === "line";
        const area = one.draw === "area" || one.draw === "solid";
        return {
            label: one.name,
            show: settings.isOn(one.setting),
            stroke: () => (area ? "transparent" : colour(one.setting)),
            width: line ? 1.8 : 1,
            dash: line && one.dashed ? [6, 4] : undefined,
            fill: area ? () => colour(one.setting) + (one.draw === "solid" ? "c8" : "4d") : undefined,
            paths: area ? uPlot.paths.stepped({ align: 1 }) : line ? uPlot.paths.linear() : () => null,
            points: {
                show: one.draw === "dots",
                size: 8.5,
                width: one.hollow ? 1.6 : 1.2,
                stroke: () => (one.hollow ? colour(one.setting) : theme("paper")),
                fill: () => (one.hollow ? theme("paper") : colour(one.setting)),
            },
            spanGaps: line,
        };
    }

    // From the lowest run to the highest.
    function band(ctx, one, place) {
        const known = one.low.flatMap((low, at) => (low === null ? [] : [at]));
        ctx.globalAlpha = 0.16;
        ctx.beginPath();
        known.forEach((at) => ctx.lineTo(...place(at, one.high[at])));
        known.reverse().forEach((at) => ctx.lineTo(...place(at, one.low[at])));
        ctx.fill();
        ctx.globalAlpha = 1;
    }

    // As far as the runs behind each dot scatter.
    function scatter(ctx, one, place) {
        ctx.lineWidth = 2 * devicePixelRatio;
        one.low.forEach((low, at) => {
            if (low === null) return;
            ctx.beginPath();
            ctx.moveTo(...place(at, low));
            ctx.lineTo(...place(at, one.high[at]));
            ctx.stroke();
        });
    }

    // Names stand where they fit: to the right of their dot, else to its left.
    function names(u, one, place) {
        const { ctx } = u;
        ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
        ctx.textBaseline = "middle";
        one.y.forEach((value, at) => {
            if (value === null) return;
            const [x, y] = place(at, value);
            const gap = 9 * devicePixelRatio;
            const room = { right: u.bbox.left + u.bbox.width - x - gap, left: x - u.bbox.left - gap };
            const width = (text) => ctx.measureText(text).width;
            const isLeft = width(one.name) > room.right && room.left > room.right;
            const most = Math.min(Math.max(room.left, room.right), 260 * devicePixelRatio);
            let shown = one.name;
            for (let kept = shown.length; kept > 0 && width(shown) > most; kept -= 1) shown = `${one.name.slice(0, kept)}…`;
            ctx.textAlign = isLeft ? "right" : "left";
            ctx.fillStyle = theme("ink");
            ctx.fillText(shown, isLeft ? x - gap : x + gap, y);
        });
    }

    // Shares of columns, one upon the other, each as it is in the picture.
    function shares(u, { stack }, svg) {
        const { ctx } = u;
        const tops = [];
        stack.parts.forEach((part) => {
            const { fill, fillOpacity } = getComputedStyle(svg.querySelector(`.${part.class}`));
            ctx.fillStyle = fill;
            ctx.globalAlpha = Number(fillOpacity);
            part.y.forEach((share, column) => {
                if (!share) return;
                const low = tops[column] || 0;
                tops[column] = low + share;
                const [left, right] = [column, column + 1]
                    .map((end) => Math.round(u.valToPos(end * stack.width, "x", true)));
                const [top, bottom] = [low + share, low].map((end) => Math.round(u.valToPos(end, "y", true)));
                ctx.fillRect(left, top, Math.max(1, right - left), bottom - top);
            });
        });
        ctx.globalAlpha = 1;
    }

    // From each dot to the end of its interval.
    function intervals(ctx, one, place) {
        ctx.lineWidth = 2 * devicePixelRatio;
        one.to.forEach((to, at) => {
            if (to === null) return;
            const [x, y] = place(at, to);
            ctx.beginPath();
            ctx.moveTo(...place(at, one.y[at]));
            ctx.lineTo(x, y);
            ctx.stroke();
            ctx.beginPath();
            ctx.arc(x, y, 3 * devicePixelRatio, 0, 2 * Math.PI);
            ctx.fillStyle = theme("paper");
            ctx.fill();
            ctx.stroke();
        });
    }

    // Bands, means, intervals, names, shares and heat maps: what uPlot leaves to others.
    function paint(u, chart, svg) {
        const { ctx } = u;
        ctx.save();
        ctx.beginPath();
        ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
        ctx.clip();
        const place = (at, value) => [u.valToPos(chart.at[at], "x", true), u.valToPos(value, "y", true)];
        chart.series.filter((one) => settings.isOn(one.setting)).forEach((one) => {
            ctx.strokeStyle = ctx.fillStyle = colour(one.setting);
            if (one.low) (one.draw === "dots" ? scatter : band)(ctx, one, place);
            if (one.mean !== undefined) {
                const y = u.valToPos(one.mean, "y", true);
                ctx.lineWidth = devicePixelRatio;
                ctx.stroke(new Path2D(`M${u.bbox.left} ${y}h${u.bbox.width}`));
            }
            if (one.to) intervals(ctx, one, place);
            if (one.named) names(u, one, place);
        });
        if (chart.stack) shares(u, chart, svg);
        if (chart.heat) {
            const { heat } = chart;
            ctx.fillStyle = colour(heat.setting);
            heat.columns.forEach((pairs, column) => {
                const left = Math.round(u.valToPos(column * heat.width, "x", true));
                const right = Math.round(u.valToPos((column + 1) * heat.width, "x", true));
                for (let at = 0; at < pairs.length; at += 2) {
                    const [bottom, top] = [0, 1].map((up) => heat.rows[pairs[at] + up])
                        .map((bound) => Math.round(u.valToPos(bound, "y", true)));
                    ctx.globalAlpha = 0.2 + 0.8 * (Math.log1p(pairs[at + 1]) / Math.log1p(heat.most));
                    ctx.fillRect(left, top, Math.max(1, right - left), bottom - top);
                }
            });
        }
        ctx.restore();
    }

    // What is at the cursor, in words.
    function told(u, chart) {
        const { left, top, idx } = u.cursor;
        if (left === undefined || left < 0 || idx === null || idx === undefined) return "";
        const across = (value) => write[chart.x.quantity](value, chart.x);
        const up = (value) => write[chart.y.quantity](value, chart.y);
        if (chart.heat) {
            const column = Math.floor(u.posToVal(left, "x") / chart.heat.width);
            const at = across(column * chart.heat.width);
            const ns = u.posToVal(top, "y");
            const row = chart.heat.rows.findIndex((bound) => bound > ns) - 1;
            const pairs = chart.heat.columns[column] || [];
            const found = pairs.findIndex((value, i) => i % 2 === 0 && value === row);
            const count = found < 0 ? 0 : pairs[found + 1];
            if (row < 0) return at;
            return `${at}: ${thousands(count)} of ${up(chart.heat.rows[row])} to ${up(chart.heat.rows[row + 1])}`;
        }
        if (chart.stack) {
            const column = Math.floor(u.posToVal(left, "x") / chart.stack.width);
            const parts = chart.stack.parts.filter((part) => part.y[column]);
            const told = parts.map((part) => `${part.name} ${up(part.y[column])}`).join(" · ");
            return `${across(column * chart.stack.width)}: ${told || "nothing"}`;
        }
        const shown = chart.series.filter((one) => settings.isOn(one.setting) && one.y[idx] !== null);
        const values = shown.map((one) => {
            return `${one.name} ${up(one.y[idx])}` + (one.to ? ` to ${up(one.to[idx])}` : "");
        });
        return values.length ? `${across(chart.at[idx])}: ${values.join(" · ")}` : "";
    }

    function make(box) {
        const chart = JSON.parse(box.querySelector("script.chart").textContent);
        const key = chart.group || box.id;
        const svg = box.querySelector("svg");
        const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
        const size = () => {
            const across = Math.max(200, box.clientWidth);
            return { width: across, height: Math.round(Math.min(340, Math.max(190, (across * height) / width))) };
        };
        const frame = document.createElement("div");
        frame.className = "live";
        frame.tabIndex = 0;
        frame.setAttribute("role", "group");
        const keys = "arrow keys show values, + and - zoom, 0 shows all";
        frame.setAttribute("aria-label", `${svg.querySelector("title").textContent}; ${keys}`);
        const line = document.createElement("p");
        line.className = "told";
        line.setAttribute("aria-live", "polite");
        const rest = chart.good || "\u00a0";
        line.textContent = rest;
        box.insertBefore(frame, svg.nextSibling);
        frame.append(line);

        // uPlot has its cursor at the places of a series: heat maps and shares get one without values.
        const none = chart.heat || chart.stack ? [{ paths: () => null, points: { show: false } }] : [];
        const u = new uPlot({
            ...size(),
            padding: [8, 24, 0, 0],
            legend: { show: false },
            cursor: {
                sync: chart.group ? { key: chart.group, setSeries: false, scales: ["x", null] } : undefined,
                drag: { x: true, y: false, setScale: false },
                y: Boolean(chart.heat),
                points: { size: 7 },
                bind: { dblclick: () => () => zoom(key, null) },
            },
            scales: {
                x: { time: false, auto: false },
                y: {
                    distr: chart.y.log ? 3 : 1,
                    range: (_, low, high) => {
                        const { from, to, log } = chart.y;
                        if (!zooms.has(key) || low === null || !(high > low)) return [from, to];
                        return log ? [low / 1.2, high * 1.2] : [from, Math.min(to, high * 1.05)];
                    },
                },
            },
            axes: [axis(chart, "x"), axis(chart, "y")],
            series: [{}, ...chart.series.map(series), ...none],
            hooks: {
                draw: [(u) => paint(u, chart, svg)],
                setCursor: [(u) => { line.textContent = told(u, chart) || rest; }],
                setSelect: [(u) => {
                    if (u.select.width < 4) return;
                    const ends = [u.select.left, u.select.left + u.select.width].map((at) => u.posToVal(at, "x"));
                    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
                    zoom(key, ends);
                }],
            },
        }, [chart.at, ...chart.series.map((one) => one.y), ...none.map(() => chart.at.map(() => null))], frame);
        frame.append(line);

        const apply = () => {
            const [min, max] = zooms.get(key) || [chart.x.from, chart.x.to];
            u.setScale("x", { min, max });
        };

        frame.addEventListener("keydown", (event) => {
            const [from, to] = zooms.get(key) || [chart.x.from, chart.x.to];
            const last = chart.at.length - 1;
            const at = u.cursor.idx === null || u.cursor.idx === undefined ? -1 : u.cursor.idx;
            const move = (idx) => {
                const clamped = Math.min(last, Math.max(0, idx));
                u.setCursor({ left: u.valToPos(chart.at[clamped], "x"), top: u.over.clientHeight / 2 });
            };
            const middle = at < 0 ? (from + to) / 2 : chart.at[at];
            const near = (factor) => {
                const half = ((to - from) * factor) / 2;
                return [Math.max(chart.x.from, middle - half), Math.min(chart.x.to, middle + half)];
            };
            const does = {
                ArrowRight: () => move(at + 1),
                ArrowLeft: () => move(at < 0 ? last : at - 1),
                Home: () => move(u.valToIdx(from)),
                End: () => move(u.valToIdx(to)),
                "+": () => zoom(key, near(0.5)),
                "=": () => zoom(key, near(0.5)),
                "-": () => zoom(key, near(2)),
                0: () => zoom(key, null),
            };
            if (!does[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
            event.preventDefault();
            does[event.key]();
        });

        const one = { key, apply, redraw: () => u.redraw(), show: () => {
            chart.series.forEach((curve, number) => u.setSeries(number + 1, { show: settings.isOn(curve.setting) }));
            u.redraw();
        } };
        made.push(one);
        box.classList.replace("waiting", "drawn");
        new ResizeObserver(() => { if (box.clientWidth) u.setSize(size()); }).observe(box);
        apply();
    }

    const boxes = [...document.querySelectorAll(".picture")].filter((box) => box.querySelector("script.chart"));
    // Reserves the line of values below each plot, so that nothing below moves when the plot is drawn.
    boxes.forEach((box) => box.classList.add("waiting"));
    const seen = new IntersectionObserver((entries) => {
        entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
            seen.unobserve(entry.target);
            make(entry.target);
        });
    }, { rootMargin: "400px" });
    boxes.forEach((box) => seen.observe(box));

    settings.watch(() => made.forEach((one) => one.show()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => made.forEach((one) => one.redraw()));
})();

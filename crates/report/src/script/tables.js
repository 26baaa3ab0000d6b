// Tables are sorted by a column when its head is pressed: downward first, then upward, then as they were.
// Numbers go by their value, whatever their unit; what has none goes last.

(() => {
    const factors = {
        ns: 1e-9, µs: 1e-6, us: 1e-6, ms: 1e-3, s: 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
        KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
    };

    function value(cell) {
        const text = cell.innerText.replace(/,/g, "").replace(/\s+/g, " ").replace("−", "-").trim();
        const found = text.match(/^([+-]?\d+(?:\.\d+)?)\s*([^\s\d/]*)/);
        return found ? Number(found[1]) * (factors[found[2]] || 1) : text && text !== "–" ? text : null;
    }

    function compare(a, b) {
        if (a === null || b === null) return (a === null) - (b === null);
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return a < b ? 1 : a > b ? -1 : 0;
    }

    // The head of each column: the lowest cell that is over it alone.
    function heads(table) {
        const columns = [];
        const taken = [];
        [...table.tHead.rows].forEach((row, y) => {
            let x = 0;
            for (const cell of row.cells) {
                while (taken[y] && taken[y][x]) x += 1;
                for (let j = y; j < y + cell.rowSpan; j += 1) {
                    taken[j] = taken[j] || [];
                    for (let i = x; i < x + cell.colSpan; i += 1) taken[j][i] = true;
                }
                if (cell.colSpan === 1) columns[x] = cell;
                x += cell.colSpan;
            }
        });
        return columns;
    }

    const tables = [...document.querySelectorAll("table")].filter((table) => {
        if (!table.tHead || table.tBodies.length !== 1 || table.matches(".figures, .settings")) return false;
        const rows = [...table.tBodies[0].rows];
        const plain = rows.every((row) => row.cells.length === rows[0].cells.length);
        return plain && rows.filter((row) => !row.matches(".sum")).length > 1;
    });

    const kept = state.list("sort").map((item) => item.split("."));
    const sorted = new Map(kept.map(([table, ...by]) => [Number(table), by]));

    tables.forEach((table, number) => {
        const body = table.tBodies[0];
        const first = [...body.rows];
        const columns = heads(table);

        function show() {
            const [column, way] = sorted.get(number) || [];
            columns.forEach((head, at) => {
                const order = way === "up" ? "ascending" : "descending";
                head.setAttribute("aria-sort", String(at) === column ? order : "none");
            });
            let rows = first;
            if (columns[column]) {
                const valued = first.map((row) => [row, value(row.cells[column])]);
                const turn = way === "up" ? -1 : 1;
                valued.sort(([a, x], [b, y]) => {
                    if (a.matches(".sum") !== b.matches(".sum")) return a.matches(".sum") ? 1 : -1;
                    return x === null || y === null ? compare(x, y) : turn * compare(x, y);
                });
                rows = valued.map(([row]) => row);
            }
            body.append(...rows);
        }

        columns.forEach((head, at) => {
            const button = document.createElement("button");
            button.type = "button";
            button.className = "sort";
            button.append(...head.childNodes);
            head.append(button);
            button.addEventListener("click", () => {
                const [column, way] = sorted.get(number) || [];
                if (column !== String(at)) sorted.set(number, [String(at), "down"]);
                else if (way === "down") sorted.set(number, [String(at), "up"]);
                else sorted.delete(number);
                state.set("sort", [...sorted].map(([table, by]) => [table, ...by].join(".")));
                show();
            });
        });
        show();
    });
})();

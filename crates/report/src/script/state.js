// What a reader opened, switched off, sorted and zoomed is kept in the fragment, behind the place that it leads to:
// #latency~off=1~open=2.5~sort=0.3.down~zoom=time.0.5000000. So a link to a page is a link to what is seen of it.

const state = (() => {
    const [start, ...rest] = decodeURIComponent(location.hash.slice(1)).split("~");
    let place = start;
    const fields = new Map(rest.map((field) => field.split("=")).filter((pair) => pair.length === 2));

    const list = (name) => (fields.get(name) || "").split(",").filter((item) => item);

    function write() {
        const kept = [...fields].filter(([, value]) => value).map(([name, value]) => `~${name}=${value}`);
        history.replaceState(null, "", "#" + place + kept.join(""));
    }

    function set(name, items) {
        fields.set(name, items.join(","));
        write();
    }

    // Leads to a place, also into what is folded away: the browser itself knows no name with a state behind it.
    function go() {
        const target = place && document.getElementById(place);
        if (!target) return;
        for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
        target.scrollIntoView();
    }

    window.addEventListener("load", go);
    window.addEventListener("hashchange", () => {
        place = decodeURIComponent(location.hash.slice(1)).split("~")[0];
        write();
        go();
    });

    const folds = [...document.querySelectorAll("details")];
    for (const number of list("open")) if (folds[number]) folds[number].open = true;
    folds.forEach((fold) => fold.addEventListener("toggle", () => {
        set("open", folds.flatMap((one, number) => (one.open ? [String(number)] : [])));
    }));

    return { list, set };
})();

// Settings that are switched off: their plots go, and their lines in plots of several.
const settings = (() => {
    const off = new Set(state.list("off").map(Number));
    const watchers = [];
    const bar = document.getElementById("switches");
    const buttons = bar ? [...bar.querySelectorAll("button")] : [];

    function show() {
        buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(!off.has(number))));
        for (const part of document.querySelectorAll("[data-setting]")) {
            part.hidden = off.has(Number(part.dataset.setting));
        }
        watchers.forEach((watcher) => watcher());
    }

    buttons.forEach((button, number) => button.addEventListener("click", () => {
        if (!off.delete(number)) off.add(number);
        state.set("off", [...off].sort((a, b) => a - b).map(String));
        show();
    }));
    if (bar) bar.hidden = false;
    show();
    return { isOn: (number) => !off.has(number), watch: (watcher) => watchers.push(watcher) };
})();

// The page is one document: the server sends its pieces as HTML, and this file puts them in place.
"use strict";

(() => {
  const main = document.getElementById("main");
  const said = document.getElementById("said");
  const steps = ["table", "question", "budget", "release", "ledger"];
  const kept = window.sessionStorage; // of this tab and this address alone; not sent by itself, as a cookie is
  let polling = 0;
  let busy = false;

  const step = () => window.location.hash.slice(1);

  function keepToken() {
    const found = /^token=([\w-]+)$/.exec(step());
    if (found) {
      if (kept.getItem("token") !== found[1]) {
        kept.clear();
        kept.setItem("token", found[1]);
      }
      window.history.replaceState(null, "", "/");
    }
  }

  function headers(more) {
    return {
      Authorization: "Bearer " + (kept.getItem("token") || ""),
      "X-Dipriv-Tab": kept.getItem("tab") || "",
      ...more,
    };
  }

  async function ask(method, path, body, more) {
    let answer;
    try {
      answer = await fetch(path, { method, body, headers: headers(more), credentials: "omit", redirect: "error" });
    } catch {
      throw new Error("The studio does not answer. If it has ended, start it again, and open its new link.");
    }
    if (answer.ok || answer.status === 409 || answer.status === 422) return answer;
    if (answer.status === 410 && !path.startsWith("/file/")) {
      kept.removeItem("tab");
      throw new Error("This tab was closed, as others were opened. Load the page again to begin anew.");
    }
    throw new Error(await answer.text());
  }

  function fail(error) {
    window.clearTimeout(polling);
    const title = document.createElement("h1");
    title.textContent = "dipriv studio";
    const box = document.createElement("div");
    box.className = "message";
    box.setAttribute("role", "alert");
    const text = document.createElement("p");
    text.textContent = error.message;
    box.append(text);
    main.replaceChildren(title, box);
    mark("");
  }

  function mark(current) {
    for (const link of document.querySelectorAll(".steps a")) {
      if (link.hash.slice(1) === current) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
  }

  // a form that was refused stays as it was filled in
  async function correct(answer) {
    document.getElementById("problem")?.remove();
    const box = document.createElement("div");
    box.id = "problem";
    box.tabIndex = -1;
    box.innerHTML = await answer.text();
    main.querySelector("h1").after(box);
    for (const field of main.querySelectorAll("input[name=version]")) field.value = answer.headers.get("X-Dipriv-Version");
    for (const button of main.querySelectorAll("button")) button.disabled = false;
    box.focus();
  }

  async function show(answer) {
    if (answer.status === 422) return correct(answer);
    window.clearTimeout(polling);
    const current = answer.headers.get("X-Dipriv-Step");
    main.innerHTML = await answer.text();
    if (step() !== current) window.history.pushState(null, "", "#" + current);
    mark(current);
    const title = main.querySelector("h1");
    document.title = title.textContent + " – dipriv studio";
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    prepare();
  }

  async function view() {
    try {
      await show(await ask("GET", steps.includes(step()) ? "/view/" + step() : "/view"));
    } catch (error) {
      fail(error);
    }
  }

  async function change(method, path, body, more) {
    if (busy) return;
    busy = true;
    for (const button of main.querySelectorAll("button")) button.disabled = true;
    try {
      await show(await ask(method, path, body, more));
    } catch (error) {
      fail(error);
    } finally {
      busy = false;
    }
  }

  function prepare() {
    if (main.querySelector("[data-running]")) poll();
    const form = main.querySelector("form[data-upload]");
    if (form) acceptFiles(form);
    const slider = document.getElementById("slider");
    if (slider) dragAlong(slider);
  }

  async function poll() {
    const box = main.querySelector("[data-running]");
    if (!box) return;
    try {
      const state = await (await ask("GET", "/progress")).json();
      if (!main.contains(box)) return;
      if (!state.running) {
        window.history.replaceState(null, "", "/"); // the step that the work leads to
        await view();
        return;
      }
      const what = document.getElementById("what");
      if (what.textContent !== state.what) what.textContent = said.textContent = state.what;
      const bar = document.getElementById("bar");
      if (state.total) {
        bar.max = state.total;
        bar.value = state.done;
      } else {
        bar.removeAttribute("value");
      }
      polling = window.setTimeout(poll, 300);
    } catch (error) {
      fail(error);
    }
  }

  function upload(file) {
    const most = Number(document.body.dataset.maxUpload);
    if (file.size > most) {
      fail(new Error(`The file has ${Math.round(file.size / 2 ** 20)} MB, and ${most / 2 ** 20} MB can be uploaded. ` +
        "Put it into the studio's folder, load this page again, and open it from there."));
      return;
    }
    said.textContent = "Uploading";
    change("PUT", "/upload", file, { "X-Dipriv-Name": encodeURIComponent(file.name) });
  }

  function acceptFiles(form) {
    const input = form.querySelector("input");
    input.addEventListener("change", () => input.files.length && upload(input.files[0]));
    for (const kind of ["dragover", "dragleave", "drop"]) {
      form.addEventListener(kind, (event) => {
        event.preventDefault();
        form.classList.toggle("dropping", kind === "dragover");
        if (kind === "drop" && event.dataTransfer.files.length) upload(event.dataTransfer.files[0]);
      });
    }
  }

  function dragAlong(slider) {
    const panels = [...main.querySelectorAll(".panel")];
    const picture = document.getElementById("plan");
    const [marker, dot] = [document.getElementById("marker"), document.getElementById("dot")];
    const choose = (place) => {
      const { epsilon, x, y } = panels[place].dataset;
      panels.forEach((panel, other) => { panel.hidden = other !== place; });
      slider.value = place;
      slider.setAttribute("aria-valuetext", "ε = " + epsilon);
      document.getElementById("epsilon").value = epsilon;
      marker.setAttribute("x1", x);
      marker.setAttribute("x2", x);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
    };
    const follow = (event) => {
      const box = picture.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * picture.viewBox.baseVal.width;
      const away = panels.map((panel) => Math.abs(panel.dataset.x - x));
      choose(away.indexOf(Math.min(...away)));
    };
    slider.addEventListener("input", () => choose(Number(slider.value)));
    picture.addEventListener("pointerdown", (event) => {
      picture.setPointerCapture(event.pointerId);
      follow(event);
    });
    picture.addEventListener("pointermove", (event) => event.buttons && follow(event));
  }

  async function download(what) {
    try {
      const link = document.createElement("a");
      link.href = (await (await ask("POST", "/ticket", what)).json()).file;
      link.download = "";
      link.click();
    } catch (error) {
      fail(error);
    }
  }

  function fill(button) {
    const { fill: n, kind, values, step: size, resolution } = button.dataset;
    const put = (name, value) => { document.getElementById(`${name}-${n}`).value = value; };
    put("kind", kind);
    put("values", values);
    put("step", size);
    put("resolution", resolution);
    document.getElementById("drafted").value = "1"; // read from private rows: the guarantee says so
    said.textContent = "Filled in";
  }

  main.addEventListener("submit", (event) => {
    event.preventDefault();
    const action = event.target.getAttribute("data-do"); // a form has its fields as properties: one is called dataset
    if (action) change("POST", "/do/" + action, new URLSearchParams(new FormData(event.target, event.submitter)));
  });

  main.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.download) download(button.dataset.download);
    if (button.dataset.fill) fill(button);
    if (button.dataset.copy) {
      await window.navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      said.textContent = "Copied";
    }
  });

  window.addEventListener("hashchange", () => {
    if (step() === "main") main.focus();
    else if (!busy) begin();
  });

  async function begin() {
    keepToken();
    try {
      if (!kept.getItem("token")) throw new Error("Open the link that the terminal shows: it has the token.");
      if (!kept.getItem("tab")) kept.setItem("tab", (await (await ask("POST", "/tab")).json()).tab);
    } catch (error) {
      fail(error);
      return;
    }
    await view();
  }

  begin();
})();

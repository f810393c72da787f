// SPDX-License-Identifier: Apache-2.0
// Light and dark: as the system says, or as the reader chose.

const KEY = "tradewind-theme";
const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto"; // a page of a file may have no storage
  }
}

export function themeSwitch(button, changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let choice = stored() in NAMES ? stored() : "auto";
  const apply = () => {
    const dark = choice === "dark" || (choice === "auto" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = NAMES[choice];
    changed();
  };
  button.addEventListener("click", () => {
    choice = { auto: "light", light: "dark", dark: "auto" }[choice];
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // it holds for this page alone then
    }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

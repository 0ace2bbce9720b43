// Light and dark: as the system prefers, or as chosen with the button. The choice lasts while the page is open: a file has no storage
// that every browser allows.

function prefersDark() {
  return typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches;
}

function themeButton() {
  let isDark = prefersDark();
  const button = element("button", {type: "button", id: "theme", class: "theme", onclick: () => set(!isDark)});
  function set(dark) {
    isDark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
  }
  set(isDark);
  return button;
}

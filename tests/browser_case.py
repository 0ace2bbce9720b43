"""A session of a headless Chromium for the tests of pages: one for all tests, with Selenium. Skips the script where there is no
Chromium with its driver, or no Selenium."""
import os
import shutil
import sys
import time
from pathlib import Path

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("skipped: no Selenium here (scripts/bootstrap makes a .venv that has it)")
    sys.exit(77)

__all__ = ["Browser", "Keys", "started"]
LONGEST_LOAD_S = 30


def program(*names):
    """The path of the first of these programs. Ubuntu's packages of these names install snaps, which cannot read /tmp."""
    for name in names:
        path = shutil.which(name)
        if path and "/snap/" not in os.path.realpath(path) and b"snap" not in Path(os.path.realpath(path)).read_bytes()[:4096]:
            return path
    return None


def started():
    """A browser; skips the script if there is none."""
    chromium = program("chromium", "chromium-browser", "google-chrome")
    driver = program("chromedriver")
    for path, name in ((chromium, "chromium"), (driver, "chromedriver")):
        if path is None:
            print(f"skipped: no {name} here (Debian's packages chromium and chromium-driver; a snap does not do)")
            sys.exit(77)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-extensions", "--no-first-run",
                 "--disable-background-networking", "--force-device-scale-factor=1", "--window-size=1400,900"):
        options.add_argument(word)
    return Browser(webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver)))


class Browser:
    """The browser as a user has it: elements are found by what they show, and clicked where they are."""

    def __init__(self, driver):
        self.driver = driver
        self.js = driver.execute_script

    def quit(self):
        self.driver.quit()

    def errors(self):
        """What the console has shown since the last call, warnings of the browser itself excluded."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def open(self, file):
        """Opens a page, and waits until it is ready. Returns the milliseconds that this took, as the page measured it."""
        self.driver.get("about:blank")  # another fragment of the same page would not load it again
        self.driver.get(Path(file).resolve().as_uri())
        return self.ready()

    def ready(self):
        until = time.monotonic() + LONGEST_LOAD_S
        while time.monotonic() < until:
            ready = self.js("return document.body && document.body.dataset.ready")
            if ready is not None:
                return int(ready)
            time.sleep(0.01)
        raise AssertionError(f"the page is not ready after {LONGEST_LOAD_S} s; console: {self.errors()}")

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        found = self.all(css)
        if not found:
            raise AssertionError(f"no element {css}; console: {self.errors()}")
        return found[0]

    def texts(self, css):
        """The texts of all elements, in one call of the driver."""
        return self.js("return [...document.querySelectorAll(arguments[0])].map(node => node.textContent)", css)

    def text(self, css):
        return self.one(css).text

    def click(self, css):
        self.click_on(self.one(css))

    def click_on(self, element):
        self.js("arguments[0].scrollIntoView({block: 'nearest'})", element)
        try:
            element.click()
        except WebDriverException:  # another element is above its middle, as in a graph: what it is there for still gets the event
            self.js("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", element)

    def tabs(self):
        return self.texts("[role=tab]")

    def tab(self, name):
        for button in self.all("[role=tab]"):
            if button.text == name:
                self.click_on(button)
                return
        raise AssertionError(f"no tab {name}: {self.tabs()}")

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def type(self, css, text):
        box = self.one(css)
        box.clear()
        box.send_keys(text)

    def busy_s(self):
        """CPU seconds of the page's thread so far. A machine that also does other work does not change them."""
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def ms_of(self, script, *arguments):
        """Milliseconds of CPU that a script takes, with the layout and style that follow from it."""
        begin = self.busy_s()
        self.js("(() => {" + script + "}).apply(null, arguments); void document.body.offsetHeight; "
                "document.querySelector('svg') && document.querySelector('svg').getBoundingClientRect();", *arguments)
        return 1000 * (self.busy_s() - begin)

    def shot(self, file):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(file))

"""Draw the picture of a report that the README shows: of ``errorband demo``, in headless Chromium.

python docs/report_image.py    # writes docs/images/report.png; needs chromium, chromedriver and selenium
"""

import base64
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

IMAGE = Path(__file__).parent / "images" / "report.png"
WIDTH, SHOWN = 1000, ("findings", "predictions")
HIDE = "nav, footer, section, details { display: none !important } main { padding-bottom: 2px !important }"
SHOW = ", ".join(f"section#{name}" for name in SHOWN) + " { display: block !important }"


def main() -> None:
    """Run the demonstration, open its report, and keep the sections that say most."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "errorband", "demo", "--output", folder], check=True)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            screen = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            browser.get((Path(folder) / "report.html").as_uri())
            WebDriverWait(browser, 120).until(
                lambda b: b.execute_script("return document.documentElement.dataset.drawn")
            )
            browser.execute_script(
                "document.head.insertAdjacentHTML('beforeend', `<style>${arguments[0]}</style>`)", f"{HIDE} {SHOW}"
            )
            height = browser.execute_script("return document.querySelector('main').scrollHeight")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        finally:
            browser.quit()
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(IMAGE, optimize=True)


if __name__ == "__main__":
    main()

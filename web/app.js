// SPDX-License-Identifier: Apache-2.0
// Which page this is: the live one, or one that holds its data.

import { h } from "./dom.js";
import { frozenData } from "./source.js";
import { planPage } from "./plan_page.js";
import { predictPage } from "./predict_page.js";
import { runPage } from "./run_page.js";
import { simPage } from "./sim_page.js";

const PAGES = { run: runPage, plan: planPage, predict: predictPage, "what-if": simPage };

const frozen = frozenData();
const app = document.getElementById("app");
if (frozen) PAGES[frozen.kind](app, frozen.data);
else if (location.protocol === "file:")
  app.replaceChildren(
    h(
      "footer",
      {},
      "A browser saved this page without its data. As a file with its data: ",
      h("code", {}, "tw report LOGS --html FILE"),
    ),
  );
else runPage(app, null);

// SPDX-License-Identifier: Apache-2.0
// Which page this is: the live one, or one that holds its data.

import { frozenData } from "./source.js";
import { planPage } from "./plan_page.js";
import { predictPage } from "./predict_page.js";
import { runPage } from "./run_page.js";
import { simPage } from "./sim_page.js";

const PAGES = { run: runPage, plan: planPage, predict: predictPage, "what-if": simPage };

const frozen = frozenData();
const app = document.getElementById("app");
if (frozen) PAGES[frozen.kind](app, frozen.data);
else runPage(app, null);

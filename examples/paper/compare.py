#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that a publication prints, beside those that tw predicts (examples/paper/README.md)."""

import argparse
import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile

REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "reference"
PROGRAM = os.environ.get("TRADEWIND_PROGRAM", "tw")
CLEAN = ("", "azure_net_counters_doubled_halved_here")  # flags of a run without failed averaging
# Column of experiments.csv, of tw predict --batch, and the head of the table.
COLUMNS = {
    "throughput": ("global_sps", "throughput_sps", "samples/s"),
    "granularity": ("granularity_wall", "granularity", "granularity"),
    "cost": ("usd_per_1m", "usd_per_million_samples", "$ per million"),
    "averaging": ("comm_s", "comm_s", "averaging s"),
}


def rows_of(table, path):
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if table is None or row["group"] == table]


def predicted(rows):
    """Rows of tw predict --batch by exp_id."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["exp_id", "model", "tbs", "peers"], extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
        file.flush()
        command = [PROGRAM, "predict", "--batch", file.name, "--pattern", "hivemind"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr or f"{PROGRAM} predict ended with {done.returncode}")
    return {row["exp_id"]: row for row in csv.DictReader(io.StringIO(done.stdout))}


def number(text):
    return float(text) if text not in (None, "", "nan") else None


def show(value):
    return "-" if value is None else f"{value:.4g}"


def experiments(family, measures):
    """Each run of the family: printed, ours, and how far off."""
    rows = [row for row in rows_of(family, REFERENCE / "experiments.csv") if row["flags"] in CLEAN]
    ours = predicted(rows)
    heads = "".join(f"{COLUMNS[name][2]:>14}{'ours':>10}{'off':>8}" for name in measures)
    print(f"{'run':<24}{'peers':<44}{heads}")
    off = {name: [] for name in measures}
    for row in rows:
        cells = ""
        for name in measures:  # an empty field: not printed
            theirs, mine, _ = COLUMNS[name]
            printed, here = number(row[theirs]), number(ours[row["exp_id"]].get(mine))
            cells += f"{show(printed):>14}{show(here):>10}"
            if not printed or here is None:
                cells += f"{'-':>8}"
                continue
            error = 100 * (here / printed - 1)
            off[name].append(abs(error))
            cells += f"{error:>+7.1f}%"
        print(f"{row['exp_id']:<24}{row['peers'][:42]:<44}{cells}")
    for name, errors in off.items():
        if errors:
            mean, worst = sum(errors) / len(errors), max(errors)
            head = f"{COLUMNS[name][2]} of {len(errors)} runs"
            print(f"{head}: off by {mean:.1f} % in the mean, {worst:.1f} % at worst")


def path_between(source, target):
    """Gbit/s of one stream and milliseconds of a round trip, by the planner."""
    done = subprocess.run(
        [PROGRAM, "net", "show", source, target, "--streams", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    words = next(line for line in lines if line[0] == lines[0][0] and line[1] == lines[-1][1])
    return float(words[3]) / 1e3, float(words[2])


def network():
    """Bandwidth of one stream and round trip between sites."""
    print(f"{'path':<34}{'Gbit/s':>8}{'ours':>8}{'rtt ms':>9}{'ours':>8}")
    for row in rows_of(None, REFERENCE / "network.csv"):
        if row["streams"] != "1":
            continue
        gbit_s, rtt_ms = path_between(row["src"], row["dst"])
        print(
            f"{row['src'] + ' > ' + row['dst']:<34}{show(number(row['gbit_s'])):>8}{show(gbit_s):>8}"
            f"{show(number(row['rtt_ms'])):>9}{show(rtt_ms):>8}"
        )


def alone():
    """One machine without averaging: speed by the clock."""
    rows = [row for row in rows_of(None, REFERENCE / "baselines.csv") if row["used_in_paper"] == "yes"]
    rows = [row for row in rows if number(row["sps_wall"]) and row["region"]]
    asked = []
    for row in rows:
        peers = f"1x{row['gpu']}@{row['provider']}:{row['region']}"
        asked.append({"exp_id": row["run"], "model": row["model"], "tbs": "32768", "peers": peers})
    ours = predicted(asked)
    print(f"{'run':<24}{'machine':<28}{'model':<14}{'samples/s':>10}{'ours':>10}")
    for row, ask in zip(rows, asked):
        speeds = f"{show(number(row['sps_wall'])):>10}{show(number(ours[row['run']]['throughput_sps'])):>10}"
        print(f"{row['run'][:22]:<24}{ask['peers'][:26]:<28}{row['model']:<14}{speeds}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    families = ["A", "B", "C", "D", "E", "F", "Lambda", "W"]
    parser.add_argument("table", choices=[*families, "network", "alone"])
    usual = ["throughput", "granularity", "cost"]
    parser.add_argument("--measures", nargs="+", choices=list(COLUMNS), default=usual)
    arguments = parser.parse_args()
    if arguments.table in families:
        experiments(arguments.table, arguments.measures)
    else:
        {"network": network, "alone": alone}[arguments.table]()


if __name__ == "__main__":
    main()

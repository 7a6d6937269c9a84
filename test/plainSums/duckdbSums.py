"""Adds up bills by category and currency: a JSON list of {name, table, sums} on standard input, totals by name on standard output."""
import json
import sys

import duckdb

connection = duckdb.connect()
totals = {}
for bill in json.load(sys.stdin):
    rows = []
    for part in bill["sums"]:
        rows += connection.sql(
            f"""select category || ' ' || currency, cast(sum(cast(amount as decimal(38, 12))) as varchar)
            from (select {part["category"]} as category, {part["currency"]} as currency, {part["amount"]} as amount from {bill["table"]})
            where amount is not null and amount <> '' group by 1"""
        ).fetchall()
    totals[bill["name"]] = rows
json.dump({"version": duckdb.__version__, "totals": totals}, sys.stdout)

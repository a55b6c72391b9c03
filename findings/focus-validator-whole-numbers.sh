#!/usr/bin/env bash
# focus-validator 2.2.1, the FinOps Foundation's own: a column of whole numbers is refused as "not decimal".
# Guess: FOCUS 1.2 names -3 and 4 as valid values of numeric columns, so an export with whole quantities conforms.
# Seen: a CSV whose PricingQuantity is 4 in each row breaks PricingQuantity-C-001-M, with 4.0 it does not: the type is that
# which the reader of the CSV infers for the whole column. It also runs only in the directory that it is installed in,
# because it opens its table of currencies by a relative path.
# It is written for Python 3.12, but for one line; with that line changed it runs on 3.11, too.
source "$(dirname "$0")/common.sh"
install --ignore-requires-python focus-validator==2.2.1 'pyarrow<22'
packages=$(python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
sed -i "s/f\"'{k.replace('.\"', '.\".\"')}'\" for k in ignore_keys/\"'\" + k + \"'\" for k in ignore_keys/" \
    "$packages/focus_validator/config_objects/focus_to_duckdb_converter.py"
validate() {
    "$work/.venv/bin/focus-validator" --data-file "$work/$1" --validate-version 1.2.0.1 --block-download 2>&1 || true
}
printf 'PricingQuantity,PricingUnit\n4,Tokens\n' >whole.csv
printf 'PricingQuantity,PricingUnit\n4.0,Tokens\n' >point.csv
expect 'in another directory it misses' "focus_validator/rules/currency_codes.csv" \
    "$(validate whole.csv | grep -oE "'focus_validator/rules/currency_codes.csv'" | tail -1 | tr -d "'")"
cd "$packages"
expect 'rules that 4 breaks' 1 "$(validate whole.csv | grep -c '^❌ PricingQuantity-C-001-M')"
expect 'rules that 4.0 breaks' 0 "$(validate point.csv | grep -c '^❌ PricingQuantity-C-001-M')"

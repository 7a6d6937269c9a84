/** Leading characters that start a formula in spreadsheets; some spreadsheets accept the full-width signs too. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
/** Spreadsheets of several locales split at semicolons, so a cell with one is quoted too. */
const NEEDS_QUOTES = /[",;\r\n]/;

/**
 * A text cell (RFC 4180); a formula gets a leading apostrophe. Do not use for numbers, whose minus sign is no
 * formula.
 */
export function csvText(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

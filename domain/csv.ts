/** Leading characters that spreadsheets read as a formula; some read the full-width signs like the plain ones. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
/** Spreadsheets of several locales split at semicolons, so a cell with one is quoted too. */
const NEEDS_QUOTES = /[",;\r\n]/;

/** One text cell (RFC 4180); a formula gets a leading apostrophe. Numbers do not pass here: their sign is no formula. */
export function csvText(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

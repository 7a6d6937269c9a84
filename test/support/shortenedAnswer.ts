/**
 * An answer as the document shows it: one item of each list and of each long map where it stays valid, and placeholders
 * for secrets.
 */
export function shortened(answer: unknown, isValid: (answer: unknown) => boolean): unknown {
  const short = rewrite(answer, 1);
  return isValid(short) ? short : rewrite(answer, Number.POSITIVE_INFINITY);
}

const SECRETS: readonly [RegExp, string][] = [
  [/tu_live_[A-Za-z0-9_]+/g, 'tu_live_…'],
  [/whsec_[A-Za-z0-9+/=_-]+/g, 'whsec_…'],
];
const TEXT_MAX = 400;
/** No object with fixed fields has as many: it is a map. */
const FIELDS_MAX = 60;

function rewrite(value: unknown, itemsMax: number): unknown {
  if (typeof value === 'string') {
    const text = SECRETS.reduce((part, [secret, placeholder]) => part.replace(secret, placeholder), value);
    return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
  }
  if (Array.isArray(value)) return value.slice(0, itemsMax).map((item) => rewrite(item, itemsMax));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value);
  const kept = fields.length > FIELDS_MAX ? fields.slice(0, itemsMax) : fields;
  return Object.fromEntries(kept.map(([name, item]) => [name, rewrite(item, itemsMax)]));
}

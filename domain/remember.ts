/** Most remembered texts; one more, and all are forgotten, so that only those that still occur come back. */
export const REMEMBERED_MAX = 2_000;
/** Longest text that is remembered. */
export const REMEMBERED_CHARS_MAX = 256;

/** The same function of a text, which remembers its results: for texts of clients, of which few differ. */
export function remember<T>(find: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    if (text.length > REMEMBERED_CHARS_MAX) return find(text);
    const known = results.get(text);
    if (known !== undefined) return known;
    const result = find(text);
    if (results.size >= REMEMBERED_MAX) results.clear();
    results.set(text, result);
    return result;
  };
}

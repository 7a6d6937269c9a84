/**
 * Explanations and findings as JSON keeps them between the steps of a run: whole numbers beyond a JSON number are marked,
 * so that reading gives exactly what was written, whatever fields there are.
 */
const MARK = '#';

/** JSON text of a value without functions and maps; bigints are `{"#": "…"}`. */
export function explanationToText(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'bigint' ? { [MARK]: part.toString() } : part,
  );
}

/** What `explanationToText` was given, from its parsed JSON. The caller names the type that it wrote. */
export function explanationFromJson<T>(json: unknown): T {
  return revive(json) as T;
}

function revive(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(revive);
  if (json === null || typeof json !== 'object') return json;
  const { [MARK]: digits } = json as Record<string, unknown>;
  if (typeof digits === 'string') return BigInt(digits);
  return Object.fromEntries(Object.entries(json).map(([key, part]) => [key, revive(part)]));
}

/** Ascending order, for `sort`: of text by code unit, so that it is the same on every machine. */
export function compare<T extends string | bigint | number>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

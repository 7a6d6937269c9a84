/**
 * Names of statements whose texts differ by what they change. A connection keeps the plan of a statement with a name, and
 * plans others each time; it keeps all names, so that only the first texts have one.
 */
export class StatementNames {
  readonly #prefix: string;
  readonly #most: number;
  readonly #names = new Map<string, string>();

  constructor(prefix: string, most: number) {
    this.#prefix = prefix;
    this.#most = most;
  }

  /** Undefined: the statement has none. */
  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size >= this.#most) return known;
    const name = `${this.#prefix}_${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }
}

/** Random draws from a seed (sfc32). */
export class Chance {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  constructor(seed: number, stream: number) {
    this.#a = seed | 0;
    this.#b = Math.imul(stream + 1, 0x9e3779b1) | 0;
    this.#c = 0x51ed270b;
    for (let round = 0; round < 12; round += 1) this.unit();
  }

  /** Uniform in [0, 1). */
  unit(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

  yes(share: number): boolean {
    return this.unit() < share;
  }

  /** From `low` to `high`, both possible. */
  int(low: number, high: number): number {
    return Math.floor(low + this.unit() * (high - low + 1));
  }

  one<T>(choices: readonly T[]): T {
    const choice = choices[this.int(0, choices.length - 1)];
    if (choice === undefined) throw new Error('no choice');
    return choice;
  }

  /** Small numbers as often as large ones. */
  spread(low: number, high: number): number {
    return Math.exp(Math.log(low) + this.unit() * (Math.log(high) - Math.log(low)));
  }

  digits(count: number): string {
    let text = String(this.int(1, 9));
    while (text.length < count) text += this.int(0, 9);
    return text;
  }
}

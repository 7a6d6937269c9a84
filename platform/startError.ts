/**
 * A reason not to start that the person at the keyboard can mend. Its message is the whole answer: one sentence
 * that names the cause and the remedy, printed without a stack.
 */
export class StartError extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.name = 'StartError';
  }
}

/** A command was called wrongly: its message says what is wrong and how it is used. */
export class Misuse extends StartError {}

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

/** Somebody asks how a command is used: its message is the answer, and nothing went wrong. */
export class HelpAsked extends Error {
  constructor(usage: string) {
    super(usage);
    this.name = 'HelpAsked';
  }
}

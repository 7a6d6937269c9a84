/**
 * What a run of the whole suite says while it runs: a line for each 25 files, and everything about what fails, nothing
 * about what passes. What tests write to the console is left out.
 */
const FILES_PER_LINE = 25;

export default class Reporter {
  #files = 0;
  #began = performance.now();

  onTestModuleEnd(file) {
    this.#files += 1;
    for (const test of file.children.allTests()) {
      if (test.result().state === 'failed') console.log(`failed: ${nameOf(test)}`);
      else if (test.diagnostic()?.flaky) console.log(`passed at the second try: ${nameOf(test)}`);
    }
    if (this.#files % FILES_PER_LINE === 0) console.log(`${this.#files} files in ${this.#seconds()} s`);
  }

  /** The failures stand together at the end, where they are looked for. */
  onTestRunEnd(files, unhandledErrors) {
    console.log(`${files.length} files in ${this.#seconds()} s`);
    for (const file of files) {
      for (const error of file.errors())
        console.log(`\n${file.relativeModuleId} could not run\n${textOf(error)}`);
      for (const suite of file.children.allSuites())
        for (const error of suite.errors()) console.log(`\n${nameOf(suite)} could not run\n${textOf(error)}`);
      for (const test of file.children.allTests('failed')) {
        console.log(`\nFAILED ${nameOf(test)}`);
        for (const error of test.result().errors ?? []) console.log(textOf(error));
      }
    }
    for (const error of unhandledErrors)
      console.log(`\nOUTSIDE OF ANY TEST${placeOf(error)}\n${textOf(error)}`);
  }

  #seconds() {
    return Math.round((performance.now() - this.#began) / 1_000);
  }
}

function nameOf(task) {
  return `${task.module.relativeModuleId} > ${task.fullName}`;
}

/** Vitest's own names of the file and of the test that ran when an error appeared that no test awaited. */
function placeOf({ VITEST_TEST_PATH: path, VITEST_TEST_NAME: name }) {
  return [path, name].map((part) => (part ? `, ${part}` : '')).join('');
}

function textOf({ message, stack, diff, cause }) {
  const because = cause ? `because of ${textOf(cause)}` : '';
  return [stack?.includes(message) ? stack : `${message}\n${stack ?? ''}`, diff, because]
    .filter((part) => part)
    .join('\n')
    .slice(0, 4_000);
}

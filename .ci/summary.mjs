/**
 * Prints "N passed, N failed" over Vitest's JSON reports and the exit codes of their runs. A file that could not be
 * loaded counts as one failure, and so does a run that failed without a failed test.
 *
 *   node .ci/summary.mjs REPORT EXIT_CODE [REPORT EXIT_CODE ...]
 */
import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
for (let at = 2; at < process.argv.length; at += 2) {
  const counts = countsOf(readReport(process.argv[at]), Number(process.argv[at + 1]));
  passed += counts.passed;
  failed += counts.failed;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, testResults: [] };
  }
}

function countsOf({ numPassedTests, numFailedTests, numPendingTests, testResults }, exitCode) {
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  for (const { name, message } of brokenFiles) console.log(`could not run ${name}: ${message}`);
  if (numPendingTests > 0) console.log(`${numPendingTests} tests did not run`);
  const seen = numFailedTests + brokenFiles.length + numPendingTests;
  const isUnseen = seen === 0 && (exitCode !== 0 || numPassedTests === 0);
  return { passed: numPassedTests, failed: isUnseen ? 1 : seen };
}

/**
 * Prints "N passed, N failed" from Vitest's JSON report and the exit code of the run. A file that could not be
 * loaded counts as one failure, and so does a run that failed without saying where.
 *
 *   node .ci/summary.mjs REPORT EXIT_CODE
 */
import { readFileSync } from 'node:fs';

const [file, exitCode] = process.argv.slice(2);

function readReport() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, testResults: [] };
  }
}

const { numPassedTests, numFailedTests, numPendingTests, testResults } = readReport();
const brokenFiles = testResults.filter(
  ({ status, assertionResults }) =>
    status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
);
for (const { name, message } of brokenFiles) console.log(`could not run ${name}: ${message}`);
if (numPendingTests > 0) console.log(`${numPendingTests} tests did not run`);
const seen = numFailedTests + brokenFiles.length + numPendingTests;
const failed = seen === 0 && (Number(exitCode) !== 0 || numPassedTests === 0) ? 1 : seen;
console.log(`${numPassedTests} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

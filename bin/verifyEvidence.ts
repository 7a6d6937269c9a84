import { Difference } from './startup/evidence/difference.js';
import { readPack } from './startup/evidence/readPack.js';
import { reportOf } from './startup/evidence/report.js';
import { type Verified, verifyPack } from './startup/evidence/verifyPack.js';

const USAGE = 'Usage: npm run evidence:verify -- PACK       a file evidence.tar.gz of a claim';

/** Checks a pack of evidence by itself: no database, no network, no settings. Exit code 1 when it does not hold. */
const [path, ...more] = process.argv.slice(2);
if (path === undefined || path.startsWith('-') || more.length > 0) {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
} else {
  const { text, isWhole } = reportOf(verify(path));
  process.stdout.write(text);
  process.exitCode = isWhole ? 0 : 1;
}

function verify(pack: string): Verified {
  try {
    return verifyPack(readPack(pack));
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    return { checks: [], differences: [error], claim: undefined };
  }
}

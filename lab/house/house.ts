/** Prints the figures of docs/architecture.md: `npm run house`. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { houseFigures, roomChanges } from './figures.js';
import { readSources } from './readHouse.js';

/** Recorded by test/lab/walks: the product files that one request or run calls, in the order of the first call. */
const walks = JSON.parse(readFileSync(path.join(PROJECT_ROOT, 'lab/house/walks.json'), 'utf8')) as Record<
  string,
  string[]
>;
const figures = houseFigures(readSources(PROJECT_ROOT));
const out: string[] = ['room         files    lines', '-----------  -----  -------'];
for (const { room, files, lines } of figures.rooms)
  out.push(`${room.padEnd(11)}  ${String(files).padStart(5)}  ${String(lines).padStart(7)}`);
out.push('', `product (without lab): ${figures.product.files} files, ${figures.product.lines} lines`);
out.push(`longest file: ${figures.longestFile.path}, ${figures.longestFile.lines} lines`);
out.push(`fullest folder: ${figures.fullestFolder.path}, ${figures.fullestFolder.files} files`);
out.push(
  `import cycles by value: ${figures.cycles.length}`,
  ...figures.cycles.map((cycle) => `  ${cycle.join(' ')}`),
);
out.push(
  '',
  'walk                        files  changes of room',
  '--------------------------  -----  ---------------',
);
for (const [name, files] of Object.entries(walks))
  out.push(
    `${name.padEnd(26)}  ${String(files.length).padStart(5)}  ${String(roomChanges(files)).padStart(15)}`,
  );
process.stdout.write(`${out.join('\n')}\n`);

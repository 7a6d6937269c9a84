/** Prints the figures of docs/architecture.md: `npm run house`. */
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { houseFigures } from './figures.js';
import { readSources } from './readHouse.js';

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
process.stdout.write(`${out.join('\n')}\n`);

import { resolve } from 'node:path';
import { Command } from 'commander';
import { restoreBackup, restoreReport } from '../backup/restoreBackup.js';
import { endOnSignal } from '../backup/words.js';
import { print, type Terminal } from '../terminal/terminal.js';

/** Restores a backup. Exit code 1 when its totals differ from those at its creation. */
export function command(terminal: Terminal): Command {
  return new Command('restore')
    .argument('<file>', 'a file that backup wrote')
    .option('--into <folder>', 'data directory that it goes into (DATA_DIR)')
    .option('--replace', 'move aside what is there')
    .action(async (file: string, { into, replace = false }: { into?: string; replace?: boolean }) => {
      endOnSignal();
      const config = terminal.readConfig();
      const dataDir = into === undefined ? config.dataDir : resolve(into);
      const restored = await restoreBackup(config, { file: resolve(file), dataDir, replace });
      print(terminal, restoreReport(restored, dataDir, config.dataDir));
      if (restored.books.differences.length > 0) terminal.exitCode = 1;
    });
}

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The top-level folders of the product. `lab` is read too but does not belong to it. */
export const ROOMS = [
  'domain',
  'usecases',
  'workflows',
  'activities',
  'dispatch',
  'db',
  'adapters',
  'api',
  'platform',
  'bin',
  'web',
  'sdk',
  'lab',
] as const;
export type Room = (typeof ROOMS)[number];

export interface SourceFile {
  /** From the root of the repository, with forward slashes. */
  path: string;
  room: Room;
  text: string;
  lines: number;
}

export interface Import {
  file: string;
  room: Room;
  specifier: string;
  /** Whether all names of the statement are types. */
  isTypeOnly: boolean;
  /** The imported names; a default or namespace import is one name. */
  names: string[];
  /** Names that are imported as values. */
  values: string[];
}

/** Types that a generator writes. */
const GENERATED = 'web/src/api/schema.d.ts';

/** Every TypeScript file of the rooms. */
export function readSources(root: string): SourceFile[] {
  return ROOMS.flatMap((room) =>
    readdirSync(path.join(root, room), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(tsx?|mjs)$/.test(entry.name))
      .map((entry) => {
        const text = readFileSync(path.join(entry.parentPath, entry.name), 'utf8');
        const file = path.relative(root, path.join(entry.parentPath, entry.name)).split(path.sep).join('/');
        return { path: file, room, text, lines: text.split('\n').length - 1 };
      })
      .filter((source) => source.path !== GENERATED),
  );
}

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?([^;'"]*?)\s*from\s*'([^']+)'|(?:^|\n)\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g;

/** The imports and re-exports of one file. */
export function importsOf(file: Pick<SourceFile, 'path' | 'room' | 'text'>): Import[] {
  return [...file.text.matchAll(IMPORT)].map((match) => {
    const clause = (match[3] ?? '').trim();
    const inner = /^\{(.*)\}$/s.exec(clause)?.[1];
    const names = (inner ?? clause)
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    const allTypes = match[2] !== undefined;
    const values = allTypes ? [] : names.filter((name) => !name.startsWith('type '));
    return {
      file: file.path,
      room: file.room,
      specifier: match[4] ?? match[5] ?? match[6] ?? '',
      isTypeOnly: allTypes || (names.length > 0 && values.length === 0),
      names: names.map((name) => name.replace(/^type /, '')),
      values,
    };
  });
}

/** The imported file without its extension, from the root; undefined for a package. */
export function targetOf(item: Pick<Import, 'file' | 'specifier'>): string | undefined {
  if (!item.specifier.startsWith('.')) return undefined;
  return path.posix.join(path.posix.dirname(item.file), item.specifier).replace(/\.js$/, '');
}

/** Groups of files that import each other by value, directly or indirectly; each contains one or more cycles. */
export function findCycles(imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>();
  for (const item of imports) {
    const target = targetOf(item);
    if (target === undefined || item.isTypeOnly) continue;
    const from = item.file.replace(/\.ts$/, '');
    next.set(from, [...(next.get(from) ?? []), target]);
  }
  // Tarjan's algorithm.
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node) as number);
    stack.push(node);
    for (const other of next.get(node) ?? []) {
      if (!index.has(other)) visit(other);
      if (stack.includes(other)) low.set(node, Math.min(low.get(node) as number, low.get(other) as number));
    }
    if (low.get(node) !== index.get(node)) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) found.push(group);
  };
  for (const node of next.keys()) if (!index.has(node)) visit(node);
  return found;
}

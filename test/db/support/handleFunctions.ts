import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../../..');
/** Top-level folders whose functions take a handle. */
const ROOMS = ['db', 'usecases'];
/** Migrations and the copy of the whole cluster run as the owner role and ask for no organization. */
const SKIPPED = ['db/migrations/', 'usecases/installation/backup/'];
/** Parameter types that provide access to the database. */
const HANDLES = [
  'OrgDb',
  'Database',
  'SystemDb',
  'TransactionConnection',
  'StatementHandle',
  'Knex',
  'ClientBase',
  'PoolClient',
  'Pool',
  'Client',
];

/** An exported function that takes a way to the database, wherever among its parameters. */
export interface HandleFunction {
  /** Path from the root of the repository. */
  file: string;
  name: string;
  /** The handles that it takes, in their order. */
  handles: string[];
}

/**
 * Every exported function of db/ and usecases/ that takes a handle: the modules' actual exports, with the parameters in
 * their sources. Throws for one whose declaration is not found, so that none is missed.
 */
export async function listHandleFunctions(): Promise<HandleFunction[]> {
  const found: HandleFunction[] = [];
  const files = sourceFiles();
  const sources = files.map((file) => readFileSync(path.join(ROOT, file), 'utf8'));
  const shapes = sources.flatMap(shapesWithHandle);
  const heirs = sources.flatMap((source) => shapesExtending(source, shapes));
  const handle = new RegExp(`\\b(${[...HANDLES, ...shapes, ...heirs].join('|')})\\b`, 'g');
  for (const [at, file] of files.entries()) {
    const source = sources[at] ?? '';
    const module = (await import(path.join(ROOT, file))) as Record<string, unknown>;
    for (const [name, value] of Object.entries(module)) {
      if (typeof value !== 'function') continue;
      const handles = [...parametersOf(source, name, file).matchAll(handle)].map(([, word = '']) => word);
      if (handles.length > 0) found.push({ file, name, handles });
    }
  }
  return found;
}

function sourceFiles(): string[] {
  return ROOMS.flatMap((room) =>
    readdirSync(path.join(ROOT, room), { recursive: true, encoding: 'utf8' }).map(
      (file) => `${room}/${file}`,
    ),
  )
    .filter((file) => file.endsWith('.ts') && !SKIPPED.some((folder) => file.startsWith(folder)))
    .sort();
}

/** Names of interfaces that contain a handle. */
function shapesWithHandle(source: string): string[] {
  const holds = new RegExp(`^  (?:readonly )?\\w+\\??: (?:${HANDLES.join('|')})\\b`, 'm');
  return [...source.matchAll(/^(?:export )?interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)].flatMap(
    ([, name = '', body = '']) => (holds.test(body) ? [name] : []),
  );
}

/** Names of the interfaces that extend one of these. */
function shapesExtending(source: string, shapes: readonly string[]): string[] {
  const extending = new RegExp(
    `^(?:export )?interface (\\w+)[^{]* extends [^{]*\\b(?:${shapes.join('|')})\\b`,
    'gm',
  );
  return [...source.matchAll(extending)].map(([, name = '']) => name);
}

/** The text between the parentheses of a declaration; for a class, of its constructor. */
function parametersOf(source: string, name: string, file: string): string {
  const declaration = new RegExp(
    `^export (?:async )?(?:function\\*?|class|const) ${name}\\b|^(?:async )?function\\*? ${name}\\b`,
    'm',
  ).exec(source);
  if (!declaration) throw new Error(`${file}: no declaration of ${name} was found`);
  const rest = source.slice(declaration.index);
  const isClass = declaration[0].includes('class ');
  const start = isClass ? rest.search(/\bconstructor\(/) : 0;
  // Types before the list, as in `name<T extends (a: B) => C>(`, have parentheses too: they are read along.
  return isClass && start < 0 ? '' : upToBody(rest.slice(start));
}

/** A declaration's text up to where its body begins. */
function upToBody(text: string): string {
  let depth = 0;
  for (let at = text.indexOf('('); at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '(') depth += 1;
    else if (sign === ')') depth -= 1;
    if (depth === 0) return text.slice(0, at);
  }
  return text;
}

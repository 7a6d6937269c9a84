import path from 'node:path';
import { type Plugin, parseAst } from 'vite';
import { ROOMS } from '../../../lab/house/readHouse.js';

/** The global function that instrumented code calls with its own path at the start of each function. */
export const WALK_HOOK = '__onProductFunction';

const PRODUCT = new Set<string>(ROOMS.filter((room) => room !== 'lab'));
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

interface Node {
  type: string;
  start: number;
  end: number;
  body?: Node;
}

/** Vite plugin: every function of the product reports its file to `WALK_HOOK` when it is called. */
export function recordWalks(root: string): Plugin {
  return {
    name: 'record-walks',
    enforce: 'post',
    transform(code, id) {
      const file = path
        .relative(root, id.split('?')[0] ?? id)
        .split(path.sep)
        .join('/');
      if (!PRODUCT.has(file.split('/')[0] ?? '')) return undefined;
      const call = `globalThis.${WALK_HOOK}?.(${JSON.stringify(file)})`;
      const insertions = insertionsOf(parseAst(code) as unknown as Node, call);
      const pieces: string[] = [];
      let from = 0;
      for (const { at, text } of insertions.sort((a, b) => a.at - b.at)) {
        pieces.push(code.slice(from, at), text);
        from = at;
      }
      return { code: pieces.join('') + code.slice(from), map: null };
    },
  };
}

/** Where the call belongs: first in a block; before the value of an arrow function without a block. */
function insertionsOf(program: Node, call: string): { at: number; text: string }[] {
  const found: { at: number; text: string }[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) visit(one);
    else if (typeof value === 'object' && value !== null) {
      const node = value as Node;
      if (FUNCTIONS.has(node.type) && node.body) {
        if (node.body.type === 'BlockStatement') found.push({ at: node.body.start + 1, text: `${call};` });
        else found.push({ at: node.body.start, text: `(${call}, ` }, { at: node.body.end, text: ')' });
      }
      for (const child of Object.values(node)) visit(child);
    }
  };
  visit(program);
  return found;
}

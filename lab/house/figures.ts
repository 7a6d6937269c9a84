import path from 'node:path';
import { findCycles, importsOf, ROOMS, type SourceFile } from './readHouse.js';

export interface HouseFigures {
  rooms: { room: string; files: number; lines: number }[];
  /** Without lab. */
  product: { files: number; lines: number };
  longestFile: { path: string; lines: number };
  fullestFolder: { path: string; files: number };
  cycles: string[][];
}

/** Migrations do not count, since released ones are neither shortened nor moved. */
export const isMigration = (file: string) => file.startsWith('db/migrations/');

export function houseFigures(sources: readonly SourceFile[]): HouseFigures {
  const rooms = ROOMS.map((room) => {
    const files = sources.filter((source) => source.room === room);
    return { room, files: files.length, lines: sum(files.map(({ lines }) => lines)) };
  });
  const product = rooms.filter(({ room }) => room !== 'lab');
  const readable = sources.filter((source) => !isMigration(source.path));
  const folders = new Map<string, number>();
  for (const { path: file } of readable) {
    const folder = path.posix.dirname(file);
    folders.set(folder, (folders.get(folder) ?? 0) + 1);
  }
  const [fullest = ['', 0]] = [...folders].sort((a, b) => b[1] - a[1]);
  const [longest] = readable.toSorted((a, b) => b.lines - a.lines);
  return {
    rooms,
    product: { files: sum(product.map(({ files }) => files)), lines: sum(product.map(({ lines }) => lines)) },
    longestFile: { path: longest?.path ?? '', lines: longest?.lines ?? 0 },
    fullestFolder: { path: fullest[0], files: fullest[1] },
    cycles: findCycles(sources.flatMap(importsOf)),
  };
}

/** Number of changes of the room between consecutive files. */
export function roomChanges(files: readonly string[]): number {
  const rooms = files.map((file) => file.split('/')[0]);
  return rooms.filter((room, at) => at > 0 && room !== rooms[at - 1]).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** What a pack says that does not follow from the rest of it: the file and, where one can be told, the line. */
export class Difference extends Error {
  readonly file: string;
  readonly line: number | undefined;

  constructor(file: string, line: number | undefined, message: string) {
    super(message);
    this.file = file;
    this.line = line;
  }
}

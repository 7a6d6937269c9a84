/** A message of the database, as its protocol writes it: a code, the length without the code, the body. */
export function messageOf(code: string, body: string): Buffer {
  const bytes = Buffer.from(body, 'latin1');
  const message = Buffer.alloc(bytes.length + 5, code, 'latin1');
  message.writeUInt32BE(bytes.length + 4, 1);
  bytes.copy(message, 5);
  return message;
}

/** The message of a copied line; a character is a byte. */
export function copyDataOf(line: string): Buffer {
  return messageOf('d', line);
}

/** The lines of messages that follow one another. */
export function linesOfCopyData(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 1 + bytes.readUInt32BE(at + 1))
    lines.push(bytes.toString('latin1', at + 5, at + 1 + bytes.readUInt32BE(at + 1)));
  return lines;
}

// Answers on their way: each stays here until the server says that it is on the disk.

import { Refused, ask } from "./parts.js";

const AGAIN = 2000;

export class Outbox {
  /** `wish` gives what every order asks to be told, `told` gets the state of each reply, and `alarm` what goes wrong. */
  constructor({ wish, told, alarm }) {
    this.wish = wish;
    this.told = told;
    this.alarm = alarm;
    this.orders = [];
    this.sending = Promise.resolve();
  }

  get empty() {
    return !this.orders.length;
  }

  /** Send an order after those before it; `then` gets the reply, and `failed` is called if the server refuses it. */
  post(order) {
    this.orders.push(order);
    this.show();
    this.sending = this.sending.then(() => this.send());
  }

  async send() {
    while (this.orders.length) {
      const [order] = this.orders;
      try {
        const reply = await ask(order.path, { ...order.body, wish: this.wish() });
        this.orders.shift();
        this.alarm("");
        this.told(reply.state);
        order.then(reply);
      } catch (error) {
        await this.failed(order, error);
      }
    }
    this.show();
  }

  async failed(order, error) {
    if (error instanceof Refused && error.status < 500) {
      this.orders.shift();
      this.alarm(`Not saved: ${error.message}`);
      order.failed?.();
    } else {
      this.alarm(`Not saved yet: ${error.message}. Trying again.`);
      await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
    }
  }

  show() {
    document.body.classList.toggle("unsaved", !this.empty);
  }
}

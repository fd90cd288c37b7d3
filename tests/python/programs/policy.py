"""A policy learned by its gradient with a baseline, on a game made of tensors: policy.py [STEPS]. Draws, discounted sums, entropy, clipping, SmoothL1."""

import sys

import torch
from torch import nn
import torch.nn.functional as F
from torch.distributions import Categorical

from printed import put

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
torch.manual_seed(25)
body = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()).cuda()
actor, critic = nn.Linear(64, 4).cuda(), nn.Linear(64, 1).cuda()
parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3, eps=1e-5)
moves = torch.tensor([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]]).cuda()
for step in range(steps):
    place, goal = torch.rand(32, 2).cuda(), torch.rand(32, 2).cuda()
    states, actions, rewards = [], [], []
    for turn in range(12):
        state = torch.cat([place, goal, goal - place], -1)
        with torch.no_grad():
            action = Categorical(logits=actor(body(state))).sample()
        place = (place + moves[action]).clamp(0, 1)
        states.append(state)
        actions.append(action)
        rewards.append(-(goal - place).abs().sum(-1))
    returns, total = [], torch.zeros(32, device="cuda")
    for reward in reversed(rewards):
        total = reward + 0.97 * total
        returns.insert(0, total)
    states, actions, returns = torch.cat(states), torch.cat(actions), torch.cat(returns)
    hidden = body(states)
    value = critic(hidden).squeeze(-1)
    advantage = returns - value.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    chosen = Categorical(logits=actor(hidden))
    loss = -(chosen.log_prob(actions) * advantage).mean() + 0.5 * F.smooth_l1_loss(value, returns) - 0.01 * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, 0.5)
    optimizer.step()
    put(f"step {step}", loss, norm, returns.mean(), actions)
put("parameter", *parameters)
